from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", "0019_customer_names")]
    operations = [
        migrations.AddField(
            "statechange",
            "reason",
            models.CharField(max_length=32, default="", db_default=""),
        ),
        AddIndexConcurrently(
            "statechange", models.Index(fields=["app", "created_at"], name="state_change_day")
        ),
    ]
