"""What the bookings of a project require: several resources at once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("availability", '0019_resource_schedule')]

    operations = [
        migrations.AddField("project", "requires", models.JSONField(blank=True, null=True)),
        migrations.AddField(
            "historicalproject", "requires", models.JSONField(blank=True, null=True)
        ),
    ]
