"""Pictures of resources, for booking pages."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("availability", "0021_buffers")]

    operations = [
        migrations.CreateModel(
            name="ResourcePicture",
            fields=[
                (
                    "resource",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="picture",
                        serialize=False,
                        to="availability.resource",
                    ),
                ),
                ("content", models.BinaryField()),
                ("type", models.CharField(max_length=32)),
                ("digest", models.CharField(max_length=64)),
            ],
        ),
    ]
