from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0002_release_1_0'),
    ]

    operations = [
        migrations.AddField(
            model_name='app',
            name='first_steps_ended_at',
            field=models.DateTimeField(blank=True, editable=False, help_text='since then, Today lists no first steps', null=True),
        ),
    ]
