from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("notifications", "0006_external")]

    operations = [
        migrations.AddField(
            model_name=model,
            name="kinds",
            field=models.JSONField(
                blank=True,
                db_default=[],
                default=list,
                help_text="such as booking.updated; empty: all but that",
            ),
        )
        for model in ("historicalwebhook", "webhook")
    ]
