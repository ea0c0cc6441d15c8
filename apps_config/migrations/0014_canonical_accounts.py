"""Accounts and open invitations are stored under the canonical address."""

from django.db import migrations, models

from common.email_address import canonical_address, check_address


def make_canonical(apps, schema_editor):
    """Of two accounts, or open invitations to an app, whose domain was typed in two ways, one keeps
    its address as typed: nobody is found by it, so it is nobody else's.
    """
    accounts = apps.get_model("apps_config", "Account").objects
    invitations = apps.get_model("apps_config", "Invitation").objects
    for rows in (accounts, invitations.filter(accepted_at=None, revoked_at=None)):
        for row in rows.order_by("created_at", "id"):
            address = canonical_address(row.email)
            of_app = {"app": row.app_id} if hasattr(row, "app_id") else {}
            if address != row.email and not rows.filter(email=address, **of_app).exists():
                rows.filter(id=row.id).update(email=address)


class Migration(migrations.Migration):
    dependencies = [("apps_config", "0013_security_event")]

    operations = [
        migrations.AlterField(
            "account",
            "email",
            models.EmailField(max_length=254, unique=True, validators=[check_address]),
        ),
        migrations.RunPython(make_canonical, migrations.RunPython.noop),
    ]
