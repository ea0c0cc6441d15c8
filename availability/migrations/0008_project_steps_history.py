from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("availability", "0007_project_steps")]

    operations = [
        migrations.AddField(
            model_name="historicalproject",
            name="order",
            field=models.CharField(blank=True, max_length=5, null=True),
        ),
        migrations.AddField(
            model_name="historicalproject",
            name="steps",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
