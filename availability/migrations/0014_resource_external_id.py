from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("availability", "0013_resource_external_id_history")]

    operations = [
        migrations.AddField(
            model_name="resource",
            name="external_id",
            field=models.CharField(blank=True, editable=False, max_length=200, null=True),
        ),
    ]
