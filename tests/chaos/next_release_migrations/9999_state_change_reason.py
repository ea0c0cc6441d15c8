import pkgutil

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

import bookings.migrations

NEWEST = max(module.name for module in pkgutil.iter_modules(bookings.migrations.__path__))


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", NEWEST)]
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
