from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('availability', '0002_project_translations'),
    ]

    operations = [
        migrations.AddField(
            model_name='historicalproject',
            name='translations',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
