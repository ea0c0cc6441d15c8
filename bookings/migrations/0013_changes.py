from django.db import migrations

from common.db.migration_operations import RunTriggersFile


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("apps_config", "0005_changes"),
        ("bookings", "0012_seat_guard"),
    ]

    operations = [RunTriggersFile(__file__)]
