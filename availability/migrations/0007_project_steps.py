from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("availability", "0006_hold_requirement")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="order",
            field=models.CharField(blank=True, max_length=5, null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="steps",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
