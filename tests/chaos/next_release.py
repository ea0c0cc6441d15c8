"""Settings of a release with one more migration of bookings (next_release_migrations)."""

from scheduling.settings import *  # noqa: F403

MIGRATION_MODULES = {"bookings": "tests.chaos.next_release_migrations"}
