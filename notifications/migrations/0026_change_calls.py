"""The webhook calls of a change: one row, which a worker expands to deliveries."""

import django.db.models.deletion
from django.db import migrations, models

import common.observability.log_format
import common.observability.tracing
from common.migration_sql import LARGE, set_autovacuum


class Migration(migrations.Migration):
    dependencies = [
        ("bookings", "0024_link_version"),
        ("notifications", "0025_attempt_outcome"),
    ]

    operations = [
        migrations.CreateModel(
            name="ChangeCalls",
            fields=[
                (
                    "change",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="calls",
                        serialize=False,
                        to="bookings.statechange",
                    ),
                ),
                ("kind", models.CharField(max_length=40)),
                (
                    "version",
                    models.PositiveSmallIntegerField(
                        help_text="how often the booking had been moved"
                    ),
                ),
                (
                    "first_number",
                    models.PositiveSmallIntegerField(help_text="of the deliveries to write"),
                ),
                (
                    "webhooks",
                    models.JSONField(help_text="ids of the webhooks to call; empty once expanded"),
                ),
                ("body", models.TextField(blank=True, help_text="of all calls; empty once erased")),
                (
                    "waiting_since",
                    models.DateTimeField(blank=True, null=True),
                ),
                (
                    "request_id",
                    models.CharField(
                        blank=True,
                        default=common.observability.log_format.current_request_id,
                        editable=False,
                        max_length=100,
                    ),
                ),
                (
                    "trace_parent",
                    models.CharField(
                        blank=True,
                        default=common.observability.tracing.current_trace_parent,
                        editable=False,
                        max_length=55,
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook calls",
                "verbose_name_plural": "webhook calls",
                "indexes": [
                    models.Index(
                        condition=models.Q(("waiting_since__isnull", False)),
                        fields=["waiting_since", "change"],
                        name="change_calls_pending",
                    )
                ],
            },
        ),
        set_autovacuum({"notifications_changecalls": LARGE}),
    ]
