from django.db import migrations

from common.db.migration_operations import RunTriggersFile


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("apps_config", "0005_changes"),
        ("bookings", "0007_declined_answers"),
    ]

    operations = [RunTriggersFile(__file__)]
