"""Who may be written to: the owner of a booking, and of a test app's bookings only its members."""

import uuid
from collections.abc import Collection, Iterable

from apps_config.models import App, Membership
from availability.models import Resource
from common.email_address import canonical_address


class Recipients:
    """Of some apps, whose members are read at once."""

    def __init__(self, app_ids: Collection[uuid.UUID]) -> None:
        members = Membership.objects.filter(app__in=app_ids, account__is_active=True)
        rows = members.select_related("account").order_by("id") if app_ids else ()
        self._members = [(row.app_id, row.role, row.account.email) for row in rows]

    def of_owner(self, app: App, resource: Resource) -> list[str]:
        """The resource's address, else the app's contact, else its owners."""
        first = resource.email or app.settings.get("contact_email")
        return [first] if first else self.owners(app)

    def owners(self, app: App) -> list[str]:
        return [
            email
            for app_id, role, email in self._members
            if app_id == app.id and role == Membership.OWNER
        ]

    def allowed(self, app: App, addresses: Iterable[str]) -> list[str]:
        """Those that may be written to: of a test app its members, of any other all."""
        present = [address for address in addresses if address]
        if app.mode != App.TEST:
            return present
        members = {email for app_id, _, email in self._members if app_id == app.id}
        return [address for address in present if canonical_address(address) in members]
