from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("availability", "0009_further_units"),
    ]

    operations = [
        migrations.AddField(
            model_name='historicalresource',
            name='party_max',
            field=models.SmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='historicalresource',
            name='party_min',
            field=models.SmallIntegerField(blank=True, null=True),
        ),
    ]
