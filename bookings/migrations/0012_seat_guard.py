from django.db import migrations

from common.db.migration_operations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("bookings", "0011_seat_hold"),
    ]

    operations = [
        RunSQLFile(__file__),
    ]
