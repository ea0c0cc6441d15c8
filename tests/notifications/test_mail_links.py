"""The links below a mail to a customer: calendars, a map, own bookings, the contact."""

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from notifications.mail import Letter, compose_mail
from tests.notifications.mails import html_of, make_app, make_event, make_letter

pytestmark = pytest.mark.usefixtures("clock")

CALENDARS = ["Calendar file", "Google Calendar", "Outlook", "Microsoft 365"]
MAP, OWN, AGAIN = "Show on a map", "Your bookings", "Book again"


def links_of(letter: Letter) -> dict[str, str]:
    """label -> address in the HTML, without the buttons."""
    found = re.findall(r'<a href="([^"]*)">([^<]*)</a>', html_of(compose_mail(letter)))
    return {unescape(label): unescape(url) for url, label in found}


@pytest.mark.parametrize(
    ("slug", "given", "labels"),
    [
        ("confirmed_customer", {}, [*CALENDARS, MAP]),
        ("confirmed_customer", {"project": "Check-up"}, [*CALENDARS, MAP, OWN]),
        ("reminder_customer", {"project": "Check-up"}, [*CALENDARS, MAP, OWN]),
        ("tentative_customer", {"project": "Check-up"}, [MAP, OWN]),
        ("cancelled_customer", {"project": "Check-up"}, [AGAIN, OWN]),
        ("cancelled_by_customer_customer", {"project": "Check-up"}, [AGAIN, OWN]),
        ("declined_customer", {"project": "Check-up"}, [AGAIN, OWN]),
        ("unpaid_customer", {"project": "Check-up"}, [AGAIN, OWN]),
        ("new_times_customer", {"project": "Check-up"}, [OWN]),
        ("declined_customer", {}, []),
        ("confirmed_owner", {"project": "Check-up"}, ["Open the booking"]),
        (
            "confirmed_customer",
            {"event": make_event("2026-11-23 08:00", "2026-11-23 08:30", where="")},
            CALENDARS,
        ),
        (
            "confirmed_customer",
            {
                "event": make_event(
                    "2026-11-23 08:00", "2026-11-23 08:30", where="https://a.example"
                )
            },
            CALENDARS,
        ),
        (
            "confirmed_customer",
            {"times": 2, "until": "2026-11-30T08:00:00+00:00", "occurrences": []},
            [MAP],
        ),
    ],
)
def test_links_of_each_mail(slug: str, given: dict[str, Any], labels: list[str]) -> None:
    assert [*links_of(make_letter(slug, **given))] == labels


def test_no_own_bookings_link_for_an_unpublished_project() -> None:
    app = make_app(publish_projects=False)

    assert OWN not in links_of(make_letter("confirmed_customer", app=app, project="Check-up"))


def test_no_calendar_links_after_the_end() -> None:
    event = make_event("2026-11-20 08:00", "2026-11-20 09:30")

    assert [*links_of(make_letter("confirmed_customer", event=event))] == [MAP]


def test_link_urls_have_the_values_of_the_booking() -> None:
    event = make_event("2026-11-23 08:00", "2026-11-23 08:30", what="A & B", where="Quay 5, <Pier>")

    links = links_of(make_letter("confirmed_customer", event=event, project="Check-up"))

    queries = {label: parse_qs(urlsplit(url).query) for label, url in links.items()}
    assert queries["Google Calendar"] == {
        "action": ["TEMPLATE"],
        "text": ["A & B"],
        "dates": ["20261123T080000Z/20261123T083000Z"],
        "location": ["Quay 5, <Pier>"],
    }
    assert queries["Outlook"] == {
        "path": ["/calendar/action/compose"],
        "rru": ["addevent"],
        "subject": ["A & B"],
        "startdt": ["2026-11-23T08:00:00Z"],
        "enddt": ["2026-11-23T08:30:00Z"],
        "location": ["Quay 5, <Pier>"],
    }
    assert links["Microsoft 365"] == links["Outlook"].replace("live.com", "office.com")
    assert queries[MAP] == {"query": ["Quay 5, <Pier>"]}
    assert urlsplit(links[OWN]).path == "/book/harbour/mine"
    assert urlsplit(links["Calendar file"]).path.endswith("/calendar.ics")


def test_all_day_links_are_in_the_zone_of_the_resource() -> None:
    event = make_event("2026-11-22 23:00", "2026-11-24 23:00", all_day=True)

    links = links_of(make_letter("confirmed_customer", event=event))

    google, outlook = (parse_qs(urlsplit(links[name]).query) for name in CALENDARS[1:3])
    assert google["dates"] == ["20261123/20261125"]
    assert (outlook["startdt"], outlook["enddt"], outlook["allday"]) == (
        ["2026-11-23"],
        ["2026-11-25"],
        ["true"],
    )


def test_contact_link_for_customers() -> None:
    app = make_app(contact_email="desk@harbour.example")
    customers, owners = (
        compose_mail(make_letter(slug, app=app))
        for slug in ("declined_customer", "tentative_owner")
    )

    assert "Questions? Contact us: desk@harbour.example" in customers.body
    assert 'Contact us: <a href="mailto:desk@harbour.example">desk@harbour.example</a>' in html_of(
        customers
    )
    assert "Contact us" not in owners.body


@pytest.mark.parametrize("contact", ["", "nobody", 1, "a@b.example\nBcc: x@y.example"])
def test_no_contact_link_of_a_malformed_address(contact: Any) -> None:
    app = make_app(contact_email=contact)

    assert "Contact us" not in compose_mail(make_letter("declined_customer", app=app)).body


def test_cancel_link_and_reschedule_button() -> None:
    html = html_of(compose_mail(make_letter("confirmed_customer", project="Check-up")))

    looks = re.findall(r'<a class="([^"]*)" href="[^"]*" style="[^"]*">([^<]*)</a>', html)
    assert looks == [("button other", "Choose another time"), ("link", "Cancel the booking")]
