import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("apps_config", "0005_public_key_scope")]

    operations = [
        migrations.CreateModel(
            name="RequestCount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=64)),
                ("subject", models.CharField(max_length=64)),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("count", models.PositiveIntegerField()),
                (
                    "app",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="apps_config.app",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["app", "kind", "subject", "expires_at"], name="request_count_once"
                    )
                ],
            },
        ),
    ]
