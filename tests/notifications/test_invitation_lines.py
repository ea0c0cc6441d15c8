"""Calendar entries of mails: `icalendar` reads the values that were given."""

import uuid
from datetime import UTC, datetime
from typing import Any

import icalendar
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications.mail.invitations import (
    Guest,
    Invitation,
    InvitationEntry,
    entry_uid,
    render_invitation,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=200) | st.lists(
    st.sampled_from(["Check-up", "\n", ",", ";", "\\", "\\n", "^", '"', ":", "日本", "x" * 70]),
    max_size=12,
).map("".join)
# icalendar reads a backslash before a delimiter of parameters as an escape; RFC 5545 has none.
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\\"), max_size=80
)


def invitation(**given: Any) -> Invitation:
    start, end = datetime(2026, 11, 23, 9, tzinfo=UTC), datetime(2026, 11, 23, 10, tzinfo=UTC)
    values: dict[str, Any] = {
        "method": "REQUEST",
        "occurrences": (InvitationEntry(uuid.UUID(int=1), 3, start, end),),
        "what": "Check-up",
        "where": "",
        "description": "",
        "organizer": Guest("Harbour Dental", "bookings@example.com"),
        "guests": (),
        "hosts": (),
        "url": "",
    }
    return Invitation(**values | given)


@given(what=TEXTS, where=TEXTS, description=TEXTS, name=NAMES, method=st.sampled_from("RPC"))
def test_texts_and_names_round_trip(
    what: str, where: str, description: str, name: str, method: str
) -> None:
    rendered = render_invitation(
        invitation(
            method={"R": "REQUEST", "P": "PUBLISH", "C": "CANCEL"}[method],
            what=what,
            where=where,
            description=description,
            guests=(Guest(name, "marty@example.com"),),
            url="https://example.com/?a=b;c,d",
        )
    )

    (event,) = icalendar.Calendar.from_ical(rendered).walk("VEVENT")
    assert [str(event[key]) for key in ("SUMMARY", "URL", "SEQUENCE", "UID")] == [
        what,
        "https://example.com/?a=b;c,d",
        "3",
        entry_uid(uuid.UUID(int=1)),
    ]
    assert [str(event.get(key, "")) for key in ("LOCATION", "DESCRIPTION")] == [where, description]
    assert ("ATTENDEE" in event) == (method != "P")
    assert "ATTENDEE" not in event or event["ATTENDEE"].params.get("CN", "") == name


def test_line_break_in_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="CR or LF"):
        render_invitation(invitation(url="https://example.com/\nATTENDEE:mailto:x@example.com"))
