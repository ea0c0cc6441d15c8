import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("apps_config", "0006_request_count"),
        ("notifications", "0009_delivery_updated_index"),
    ]

    operations = [
        migrations.CreateModel(
            name="Suppression",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("email", models.EmailField(help_text="in lower case", max_length=254)),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("bounced", "E-mails bounce: no e-mails"),
                            ("unsubscribed", "Unsubscribed: no reminders"),
                        ],
                        max_length=12,
                    ),
                ),
                ("detail", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField()),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="apps_config.app",
                    ),
                ),
            ],
            options={
                "verbose_name": "suppressed address",
                "verbose_name_plural": "suppressed addresses",
                "ordering": ["-created_at", "-id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["app", "email", "reason"], name="suppression_once"
                    )
                ],
            },
        ),
    ]
