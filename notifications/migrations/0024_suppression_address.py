"""Suppressions are stored under the canonical address."""

from itertools import chain

from django.db import migrations, models

from common.batching import iterate_batches
from common.email_address import canonical_address


def make_canonical(apps, schema_editor):
    """Of two suppressions of one address, whose domain was typed in two ways, one stays."""
    rows = apps.get_model("notifications", "Suppression").objects
    for row in chain.from_iterable(iterate_batches(rows.all(), 1000)):
        address = canonical_address(row.address)
        if address == row.address:
            continue
        if rows.filter(app=row.app_id, address=address, reason=row.reason).exists():
            row.delete()
        else:
            rows.filter(id=row.id).update(address=address)


class Migration(migrations.Migration):
    dependencies = [("notifications", "0023_frequent_analyze")]

    operations = [
        migrations.RemoveConstraint("suppression", "suppression_once"),
        migrations.RenameField("suppression", "email", "address"),
        migrations.AlterField(
            "suppression",
            "address",
            models.CharField(max_length=254),
        ),
        migrations.RunPython(make_canonical, migrations.RunPython.noop),
        migrations.AddConstraint(
            "suppression",
            models.UniqueConstraint(
                fields=["app", "address", "reason"], name="suppression_once"
            ),
        ),
    ]
