from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bookings", "0023a_fill_customer_address")]

    operations = [
        migrations.AddIndex("customer", models.Index(fields=["address"], name="customer_address")),
        migrations.AddIndex(
            "customer", models.Index(fields=["limit_key"], name="customer_limit_key")
        ),
        migrations.AddIndex(
            "unverifiedbooking",
            models.Index(
                fields=["app", "limit_key"],
                condition=models.Q(ended_at=None),
                name="unverified_open",
            ),
        ),
    ]
