"""The version of a booking's links, so that those of earlier e-mails can end."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bookings", "0023b_index_customer_address")]

    operations = [
        migrations.AddField(
            "booking",
            "link_version",
            models.PositiveSmallIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="raised to end the links of its e-mails",
            ),
        ),
    ]
