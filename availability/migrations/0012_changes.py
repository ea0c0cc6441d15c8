from django.db import migrations

from common.db.migration_operations import RunTriggersFile


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("apps_config", "0005_changes"),
        ("availability", "0011_resource_party"),
    ]

    operations = [RunTriggersFile(__file__)]
