from django.db import migrations

from common.db.migration_operations import RunSQLFile


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0005_stored_metrics'),
    ]

    operations = [RunSQLFile(__file__)]
