"""The scope of widget keys, and the keys of hosted pages bound to their projects.

An older release had one key for all hosted pages of an app, described as "Hosted pages".
"""

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from common.updated_at import transaction_start

DESCRIPTION = "Hosted pages"


def bind_page_keys(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    keys = apps.get_model("apps_config", "Credential").objects.filter(
        kind="widget", description=DESCRIPTION, projects__isnull=True
    )
    projects = apps.get_model("availability", "Project").objects.filter(deleted_at=None)
    for key in keys.iterator():
        ids = list(projects.filter(app=key.app_id).order_by("id").values_list("id", flat=True))
        if not ids:
            continue
        keys.filter(id=key.id).update(
            projects=[str(project_id) for project_id in ids],
            # A key that several pages handed out belongs to none of them: the pages make new ones.
            hosted_project=ids[0] if len(ids) == 1 else None,
            updated_at=transaction_start(),
        )


class Migration(migrations.Migration):
    dependencies = [
        ("apps_config", "0004_credential_updated_at"),
        ("availability", "0008_event_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="credential",
            name="projects",
            field=models.JSONField(
                blank=True,
                help_text="ids of the only projects that it may use; empty: any",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="credential",
            name="origins",
            field=models.JSONField(
                blank=True, help_text="the only web origins that may use it; empty: any", null=True
            ),
        ),
        migrations.AddField(
            model_name="credential",
            name="hosted_project",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                editable=False,
                help_text="the project whose hosted page hands it out",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="availability.project",
            ),
        ),
        migrations.RunPython(bind_page_keys, migrations.RunPython.noop),
    ]
