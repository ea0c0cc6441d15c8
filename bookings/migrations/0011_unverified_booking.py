import django.db.models.deletion
from django.db import migrations, models

import common.ids


class Migration(migrations.Migration):
    dependencies = [
        ("apps_config", "0006_request_count"),
        ("availability", "0008_event_indexes"),
        ("bookings", "0010_public_bookings"),
    ]

    operations = [
        migrations.CreateModel(
            name="UnverifiedBooking",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=common.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("email", models.EmailField(blank=True, help_text="in lower case", max_length=254)),
                ("body", models.JSONField(default=dict, help_text="of POST /bookings")),
                ("zone", models.CharField(help_text="of wall times in the body", max_length=64)),
                ("codes_tried", models.PositiveSmallIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="apps_config.app",
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="bookings.booking",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="availability.project",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at", None)),
                        fields=["app", "email"],
                        name="unverified_open",
                    )
                ],
            },
        ),
    ]
