from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('availability', '0001_release_1_0'),
    ]

    operations = [
        migrations.AddField(
            model_name='project',
            name='translations',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
