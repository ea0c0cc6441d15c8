"""Count deliveries for lists: by type and webhook, and by the day on which they were created."""

from django.db import migrations

from apps_config.listing_tally_triggers import AddListingTally, TalliedTable

DELIVERIES = TalliedTable(
    listing="deliveries",
    table="notifications_delivery",
    columns=("id", "type", "webhook_id"),
    # The webhook's id has no hyphens, as on SQLite.
    part="{row}.type || ':' || replace(coalesce(CAST({row}.webhook_id AS text), ''), '-', '')",
    period={
        # The list is ordered by id, which begins with its milliseconds.
        "postgresql": "(('x' || left(replace({row}.id::text, '-', ''), 12))::bit(48)::bigint"
        " / 86400000)::int",
        "sqlite": "0",
    },
)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("apps_config", "0007_listing_tally"),
        ("notifications", "0016_check_open_lanes"),
    ]

    operations = [AddListingTally(DELIVERIES)]
