"""A trigger would stamp what the previous release changes, but each update would pay for it for
ever, to close a gap of seconds: its workers are stopped before the migration, its web inserts with
the default, and has no listing that asks for the column.
"""

from django.contrib.postgres.functions import TransactionNow
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("notifications", "0007_webhook_kinds")]

    operations = [
        migrations.AddField(
            model_name="delivery",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, db_default=TransactionNow()),
        ),
    ]
