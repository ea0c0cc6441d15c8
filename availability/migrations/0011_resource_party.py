from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("availability", "0010_resource_party_history"),
    ]

    operations = [
        migrations.AddField(
            model_name='resource',
            name='party_max',
            field=models.SmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='resource',
            name='party_min',
            field=models.SmallIntegerField(blank=True, null=True),
        ),
    ]
