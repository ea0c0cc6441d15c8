from django.db import migrations, models

from common.concurrent_index import AddIndexOnline, RemoveIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", "0016_listing_tallies")]

    operations = [
        AddIndexOnline(
            "booking",
            models.Index(
                fields=["project", "-created_at", "-id"],
                condition=models.Q(project__isnull=False),
                name="booking_listing_by_project",
            ),
        ),
        RemoveIndexOnline("booking", "booking_project"),
        AddIndexOnline(
            "booking",
            models.Index(
                fields=["app", "graph", "-created_at", "-id"],
                condition=models.Q(deleted_at=None),
                name="booking_listing_by_graph",
            ),
        ),
        AddIndexOnline(
            "booking",
            models.Index(
                fields=["app", "-created_at", "-id"],
                condition=models.Q(completed=False, deleted_at=None),
                name="booking_listing_open",
            ),
        ),
        AddIndexOnline(
            "booking",
            models.Index(
                fields=["app", "-created_at", "-id"],
                condition=models.Q(completed=False, max_seats__isnull=False, deleted_at=None),
                name="booking_open_groups",
            ),
        ),
        RemoveIndexOnline("booking", "booking_groups"),
    ]
