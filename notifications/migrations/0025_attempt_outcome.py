"""The outcome of an attempt, which the error and the duration implied."""

from django.db import migrations, models

# 40 seconds were the lease, which no other attempt could reach.
FILL = """
UPDATE notifications_attempt SET outcome = CASE WHEN seconds >= 40 THEN 'lost' ELSE 'failed' END
WHERE error <> ''
"""


class Migration(migrations.Migration):
    dependencies = [("notifications", "0024_suppression_address")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="outcome",
            field=models.CharField(
                choices=[
                    ("ok", "ok"),
                    ("failed", "failed"),
                    ("unconfirmed", "unconfirmed"),
                    ("lost", "lost"),
                ],
                default="ok",
                max_length=11,
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
