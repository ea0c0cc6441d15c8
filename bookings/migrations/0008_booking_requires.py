from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("bookings", "0007_declined_answers")]

    operations = [
        migrations.AddField(
            model_name="booking",
            name="requires",
            field=models.JSONField(
                blank=True,
                editable=False,
                help_text="its own; NULL: those of its project",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="booking",
            name="visit",
            field=models.JSONField(
                blank=True, editable=False, help_text="its own `steps` and `order`", null=True
            ),
        ),
    ]
