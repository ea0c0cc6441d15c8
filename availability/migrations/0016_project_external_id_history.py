from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("availability", "0015_resource_external_id_once")]

    operations = [
        migrations.AddField(
            model_name="historicalproject",
            name="external_id",
            field=models.CharField(blank=True, editable=False, max_length=200, null=True),
        ),
    ]
