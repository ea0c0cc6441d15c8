from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("availability", "0012_changes")]

    operations = [
        migrations.AddField(
            model_name="historicalresource",
            name="external_id",
            field=models.CharField(blank=True, editable=False, max_length=200, null=True),
        ),
    ]
