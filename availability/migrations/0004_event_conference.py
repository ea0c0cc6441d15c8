from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('availability', '0003_project_translations_history'),
    ]

    operations = [
        migrations.AddField(
            model_name='event',
            name='conference_provider',
            field=models.CharField(blank=True, editable=False, max_length=8, null=True),
        ),
        migrations.AddField(
            model_name='event',
            name='conference_url',
            field=models.CharField(blank=True, editable=False, help_text='empty: a connected calendar has not made it yet', max_length=500, null=True),
        ),
    ]
