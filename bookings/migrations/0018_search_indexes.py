"""Indexes for the search of texts of customers, `*` at either end, and of keys of `meta`."""

from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations

from common.concurrent_index import AddPostgreSQLIndex


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("bookings", "0017_listing_indexes")]

    operations = [
        TrigramExtension(),
        AddPostgreSQLIndex(
            "customer_search",
            "bookings_customer USING gin (upper(name::text) gin_trgm_ops,"
            " upper(email::text) gin_trgm_ops, upper(phone::text) gin_trgm_ops)",
        ),
        AddPostgreSQLIndex(
            "app_customer_search",
            "bookings_appcustomer USING gin (upper(address::text) gin_trgm_ops)",
        ),
        AddPostgreSQLIndex("booking_meta", "bookings_booking USING gin (meta jsonb_path_ops)"),
    ]
