from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('external_calendars', '0002_grants'),
    ]

    operations = [
        migrations.AddField(
            model_name='writtenevent',
            name='answers',
            field=models.JSONField(blank=True, editable=False, null=True),
        ),
    ]
