from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("availability", "0004_event_conference")]

    operations = [
        migrations.AddField(
            model_name="event",
            name="requirement",
            field=models.CharField(blank=True, editable=False, max_length=100, null=True),
        ),
        migrations.AddField(
            model_name="event",
            name="step",
            field=models.CharField(blank=True, editable=False, max_length=100, null=True),
        ),
    ]
