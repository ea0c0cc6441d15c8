from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bookings", "0009_outcome_index")]

    operations = [
        # Null, so that the previous release keeps writing and SQLite keeps the table's triggers.
        migrations.AddField(
            model_name="booking",
            name="untrusted_texts",
            field=models.JSONField(
                blank=True,
                help_text="which texts of the event a public caller wrote; null: no public caller made it",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="booking",
            name="calendar_uid",
            field=models.UUIDField(
                blank=True,
                editable=False,
                help_text="names the booking in calendars without its id; null: made by an older release",
                null=True,
            ),
        ),
    ]
