from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('apps_config', '0005_changes'),
    ]

    operations = [
        migrations.CreateModel(
            name='DatabaseHome',
            fields=[
                ('number', models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
            ],
        ),
    ]
