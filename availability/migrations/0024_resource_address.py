"""The canonical address of a resource, which is unique in its app."""

from django.db import migrations, models

from common.email_address import canonical_address
from common.email_columns import fill_from_email


def fill_addresses(apps, schema_editor):
    resources = apps.get_model("availability", "Resource").objects.exclude(email=None)
    fill_from_email(resources.only("email"), {"address": canonical_address})
    separate_resources(resources)


def separate_resources(resources):
    """Of two resources with one address, whose domain was typed in two ways, the older one keeps
    it. A text with a space is nobody's address: nobody logs in to the newer one by it, and its
    e-mails still go to what was typed.
    """
    taken = set()
    for resource in resources.filter(deleted_at=None).only("app", "address").order_by("id"):
        if (resource.app_id, resource.address) in taken:
            resources.filter(id=resource.id).update(address=f"{resource.id} {resource.address}"[:254])
        taken.add((resource.app_id, resource.address))


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
