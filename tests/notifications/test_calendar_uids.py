"""The UID of a calendar entry names no booking (additions A8)."""

import re
from typing import Any

import pytest

from external_calendars.models import WrittenEvent
from external_calendars.providers import PROVIDERS
from tests.bookings.booking_drafts import uid_of
from tests.external_calendars.mirrored import Memory, connect
from tests.notifications.test_public_texts import at_slot, everything_sent
from tests.world import Tenant

pytestmark = pytest.mark.both_databases


@pytest.fixture
def ada(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(PROVIDERS, "caldav", Memory())
    made = tenant.make_resource("Ada", email="ada@example.com")
    connect(made)
    return made


def uids(kind: str) -> set[str]:
    """All UIDs in what leaves: e-mails to the customer, and the connected calendar."""
    texts = [each.text for each in everything_sent(kind)]
    found = {uid.strip() for text in texts for uid in re.findall(r"^UID:(.*)$", text, re.MULTILINE)}
    return {uid.partition("@")[0] for uid in found}


def test_uid_does_not_contain_the_booking_id(tenant: Tenant, ada: Any) -> None:
    booking = tenant.book(resource_id=ada["id"], **at_slot(0)).data
    made = uids("confirmed")
    tenant.post(f"/bookings/{booking['id']}/reschedule", at_slot(4))
    (written,) = WrittenEvent.objects.values_list("uid", flat=True)
    moved = uids("rescheduled")

    assert made == moved == {uid_of(booking)} == {written.partition("@")[0]}
    assert uid_of(booking) != booking["id"]
    shown = tenant.get(f"/bookings/{booking['id']}?include=provider_event").data
    assert shown["provider_event"]["provider_id"] == written
