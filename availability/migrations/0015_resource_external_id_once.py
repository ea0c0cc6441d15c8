from django.db import migrations, models

from common.db.concurrent_index import AddUniqueConstraintOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("availability", "0014_resource_external_id")]

    operations = [
        AddUniqueConstraintOnline(
            model_name="resource",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deleted_at", None), ("external_id__isnull", False)),
                fields=("app", "external_id"),
                name="resource_external_id_once",
            ),
        ),
    ]
