from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("availability", "0005_event_requirement")]

    operations = [
        migrations.AddField(
            model_name="hold",
            name="requirement",
            field=models.CharField(blank=True, editable=False, max_length=100, null=True),
        ),
        migrations.AddField(
            model_name="hold",
            name="step",
            field=models.CharField(blank=True, editable=False, max_length=100, null=True),
        ),
    ]
