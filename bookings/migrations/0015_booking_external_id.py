from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bookings", "0014_source_mcp")]

    operations = [
        migrations.AddField(
            model_name="booking",
            name="external_id",
            field=models.CharField(blank=True, editable=False, max_length=200, null=True),
        ),
    ]
