# A webhook's log, the newest first, whatever the size of the queue: one index in place of another.

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0004_delivery_failures"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("webhook__isnull", False)),
                fields=["webhook", "-id"],
                name="delivery_of_webhook",
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="webhook",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="notifications.webhook",
            ),
        ),
    ]
