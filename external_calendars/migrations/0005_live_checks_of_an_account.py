from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("external_calendars", "0004_push_and_problems"),
    ]

    operations = [
        migrations.AddField(
            model_name="grant",
            name="checked_until",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
