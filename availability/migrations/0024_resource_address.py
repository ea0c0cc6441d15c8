"""The canonical address of a resource, which is unique in its app."""

from django.db import migrations, models

from common.batching import iterate_batches
from common.email_address import canonical_address
from common.sql import update_rows


def fill_addresses(apps, schema_editor):
    """Of two resources with one address, whose domain was typed in two ways, the older one gets it.

    A text with a space is nobody's address: nobody logs in to the newer resource by it, and its
    e-mails still go to what was typed.
    """
    resources = apps.get_model("availability", "Resource").objects.exclude(email=None)
    taken = set()
    for batch in iterate_batches(resources.only("app", "email", "deleted_at"), 1000):
        for resource in batch:
            resource.address = canonical_address(resource.email)
            key = (resource.app_id, resource.address)
            if resource.deleted_at is None and key in taken:
                resource.address = f"{resource.id} {resource.address}"[:254]
            elif resource.deleted_at is None:
                taken.add(key)
        # Each row once: PostgreSQL checks a row's foreign keys again after a second update, and
        # then makes no index in this transaction.
        update_rows(batch, ["address"])


class Migration(migrations.Migration):
    dependencies = [("availability", "0023_frequent_analyze")]

    operations = [
        migrations.RemoveConstraint("resource", "resource_email_once"),
        migrations.AddField(
            "resource", "address", models.CharField(max_length=254, editable=False, null=True)
        ),
        migrations.RunPython(fill_addresses, migrations.RunPython.noop),
        migrations.AddConstraint(
            "resource",
            models.UniqueConstraint(
                fields=["app", "address"],
                condition=models.Q(deleted_at=None, address__isnull=False),
                name="resource_email_once",
            ),
        ),
    ]
