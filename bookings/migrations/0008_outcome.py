from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bookings", "0007_database_defaults")]

    operations = [
        # Null, so that the previous release keeps writing and SQLite keeps the table's triggers.
        migrations.AddField(
            model_name="booking",
            name="outcome",
            field=models.CharField(
                blank=True,
                choices=[("attended", "attended"), ("no_show", "no_show")],
                help_text="whether the customer came; empty: nobody has said",
                max_length=8,
                null=True,
            ),
        ),
    ]
