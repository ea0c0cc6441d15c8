from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("external_calendars", "0005_live_checks_of_an_account"),
    ]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="makes_links",
            field=models.BooleanField(editable=False, null=True),
        ),
    ]
