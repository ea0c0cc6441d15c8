"""Bookings in the back office: search, page, actions, reschedule, export."""

import csv
import io
import json
import re
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps_config.models import App, Membership
from bookings.models import Booking, PostponedTask
from bookings.services.postponed import carry_out_due
from notifications.models import Delivery
from notifications.outbox.expansion import expand_changes
from office.bookings.admin import search_bookings_by_term
from tests.external_calendars.mirrored import connect
from tests.office.conftest import Enter
from tests.office.staff import messages_of
from tests.world import Tenant

DAY = "2030-03-05"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", timezone="Europe/Berlin")


def book(tenant: Tenant, resource: Any, hour: int = 9, **given: Any) -> Any:
    body = {"start": f"{DAY} {hour:02}:00:00", "end": f"{DAY} {hour:02}:30:00"} | given
    return tenant.book(resource_id=resource["id"], **body).data


def page_of(booking: Any, name: str = "change") -> str:
    return reverse(f"admin:bookings_booking_{name}", args=[booking["id"]])


def refuse_move(client: Client, booking: Any, **given: str) -> str:
    """The page that shows a refused form of a move again."""
    answer = client.post(page_of(booking, "move"), given)
    assert answer.status_code == 200
    return answer.content.decode()


def post_form(client: Client, booking: Any, name: str, **given: str) -> str:
    """The page after a form of the booking's was sent, its tags left out."""
    answer = client.post(page_of(booking, name), given, follow=True)
    [(address, status)] = answer.redirect_chain
    assert (urlsplit(address).path, status) == (page_of(booking), 302)
    return answer.content.decode()


def steps(booking: Any) -> list[tuple[str, ...]]:
    row = Booking.objects.get(id=booking["id"])
    return list(row.logs.values_list("action", "to_state", "actor", "source", "message"))


def test_an_action_goes_through_the_service_with_its_message(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    booking = book(tenant, ada, graph="confirm_decline")

    given = {"action": "decline", "message": " We are closed. ", "confirmed": "yes"}
    shown = post_form(enter(tenant), booking, "act", **given)
    unchanged = steps(booking)
    carry_out_due(now=timezone.now() + timedelta(seconds=11))

    actor = f"editor@{tenant.app.slug}.example.com"
    assert "This booking is about to be changed." in shown
    assert len(unchanged) == 1
    assert steps(booking)[1:] == [("decline", "declined", actor, "admin", "We are closed.")]
    kinds = Delivery.objects.filter(booking_id=booking["id"]).values_list("kind", "recipient")
    assert ("declined", "customer") in set(kinds)


OWNER = "ada@example.com"
UNDO = "You can undo it for ten seconds."


@pytest.mark.parametrize(
    ("graph", "action", "title", "lines"),
    [
        (
            "confirm_decline",
            "decline",
            "Decline this booking?",
            ["Marty McFly, marty@example.com: “Request declined” e-mail"],
        ),
        (
            "instant",
            "cancel",
            "Cancel this booking?",
            [
                "Marty McFly, marty@example.com: Cancellation e-mail",
                f"The owner, {OWNER}: Cancellation e-mail",
            ],
        ),
        (
            "instant",
            "cancel_by_customer",
            "Cancel this booking on the customer's behalf?",
            [
                f"The owner, {OWNER}: Cancellation e-mail",
                "Marty McFly, marty@example.com: Cancellation e-mail",
            ],
        ),
    ],
)
def test_cancelling_actions_ask_for_confirmation(
    tenant: Tenant, enter: Enter, graph: str, action: str, title: str, lines: list[str]
) -> None:
    resource = tenant.make_resource("Ada", timezone="Europe/Berlin", email=OWNER)
    booking = book(tenant, resource, graph=graph)
    before = steps(booking)
    client = enter(tenant)

    asked = client.post(page_of(booking, "act"), {"action": action, "message": "We are closed."})
    unchanged = steps(booking)
    fields = dict(asked.context["fields"])
    post_form(client, booking, "act", **fields)
    carry_out_due(now=timezone.now() + timedelta(seconds=11))

    words = ("title", "sentence", "lines", "back")
    assert {word: asked.context[word] for word in words} == {
        "title": title,
        "sentence": "Marty McFly – Meeting, Tue 5 Mar 2030, 09:00 CET",
        "lines": [*lines, "Your message: We are closed.", UNDO],
        "back": page_of(booking),
    }
    assert fields == {"action": action, "message": "We are closed.", "confirmed": "yes"}
    assert unchanged == before
    assert (steps(booking)[-1][0], steps(booking)[-1][-1]) == (action, "We are closed.")
    told = [f"{row.kind} {row.recipient}" for row in Delivery.objects.filter(change__action=action)]
    assert len(told) == len(lines)


def test_a_policy_refuses_at_once(tenant: Tenant, ada: Any, enter: Enter) -> None:
    project = tenant.make_project(ada["id"], settings={"min_cancel_time": "3 days"})
    start = timezone.now().replace(microsecond=0) + timedelta(days=1)
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    settings = {"enforce_availability": False}
    booking = tenant.book(project_id=project["id"], settings=settings, **times).data

    given = {"action": "cancel_by_customer", "confirmed": "yes"}
    shown = post_form(enter(tenant), booking, "act", **given)

    assert "The policy min_cancel_time does not allow this." in shown
    assert not PostponedTask.objects.exists()


def test_confirmation_says_that_no_mail_is_sent(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = book(tenant, ada)
    App.objects.update(settings={"disable_emails": True})

    asked = enter(tenant).post(page_of(booking, "act"), {"action": "cancel"})

    assert asked.context["lines"] == ["No e-mail is sent. The app's e-mails are off.", UNDO]


def test_confirmation_names_customers_of_seats(tenant: Tenant, ada: Any, enter: Enter) -> None:
    group = book(tenant, ada, graph="group_owner", settings={"max_seats": 3})
    ann = {"name": "Ann", "email": "ann@example.com"}
    related = {"owner_booking_id": group["id"]}
    body = {"graph": "group_customer", "related": related}
    tenant.call("POST", "/bookings", {**body, "customer": ann})
    gone = tenant.call("POST", "/bookings", {**body, "customer": ann | {"name": "Bob"}}).data
    tenant.put(f"/bookings/{gone['id']}/cancel_by_customer")

    asked = enter(tenant).post(page_of(group, "act"), {"action": "cancel"})

    assert asked.context["lines"] == ["Ann, ann@example.com: Cancellation e-mail", UNDO]


def test_bulk_cancel_after_confirmation(tenant: Tenant, ada: Any, enter: Enter) -> None:
    bookings = [book(tenant, ada, 9 + number) for number in range(2)]
    client, path = enter(tenant), reverse("admin:bookings_booking_changelist")
    given = {"action": "apply_cancel", "_selected_action": [booking["id"] for booking in bookings]}

    asked = client.post(path, given)
    client.post(path, given | {"confirmed": "yes"})
    unchanged = [steps(booking)[-1][0] for booking in bookings]
    carry_out_due(now=timezone.now() + timedelta(seconds=11))

    assert (asked.context["title"], asked.context["lines"]) == (
        "Cancel 2 bookings?",
        [
            f"Marty McFly – Meeting, Tue 5 Mar 2030, {hour}:00 CET"
            "\nMarty McFly, marty@example.com: Cancellation e-mail"
            for hour in ("10", "09")
        ],
    )
    assert unchanged == ["confirm"] * 2
    assert [steps(booking)[-1][0] for booking in bookings] == ["cancel"] * 2


def test_disallowed_action_is_reported(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = book(tenant, ada, graph="confirm_decline")

    shown = post_form(enter(tenant), booking, "act", action="complete")

    assert "Mark as completed: not possible, the booking is pending." in shown
    assert [step[0] for step in steps(booking)] == ["create"]


def test_buttons_are_those_of_the_graph(
    tenant: Tenant, ada: Any, enter: Enter, time_machine: Any
) -> None:
    tentative, confirmed = book(tenant, ada, graph="confirm_decline"), book(tenant, ada, 11)
    editor, viewer = enter(tenant), enter(tenant, Membership.VIEWER)

    def buttons(client: Client, booking: Any) -> list[str]:
        return [name for name, _, _ in client.get(page_of(booking)).context["actions"]]

    assert buttons(editor, tentative) == ["confirm", "decline"]
    assert buttons(editor, confirmed) == ["cancel", "cancel_by_customer"]
    assert buttons(viewer, tentative) == []
    time_machine.move_to(f"{DAY} 10:01Z")
    owner = enter(tenant, Membership.OWNER)
    assert buttons(owner, confirmed) == ["cancel", "cancel_by_customer", "complete"]


def outcome_buttons(client: Client, booking: Any) -> list[str]:
    shown = client.get(page_of(booking)).content.decode()
    return re.findall(r'name="outcome" value="(\w*)"', shown)


def test_outcome_can_be_set_after_the_start(
    tenant: Tenant, ada: Any, enter: Enter, time_machine: Any
) -> None:
    first, second = book(tenant, ada), book(tenant, ada, 11)
    draft = book(tenant, ada, 8, action="create")
    owner = enter(tenant, Membership.OWNER)
    before = outcome_buttons(owner, first)
    early = post_form(owner, first, "outcome", outcome="attended")
    time_machine.move_to(f"{DAY} 08:01Z")
    client = enter(tenant)

    shown = [
        post_form(client, first, "outcome", outcome=given) for given in ("no_show", "attended")
    ]
    offered = [outcome_buttons(client, one) for one in (first, second, draft)]
    listed = client.get(reverse("admin:bookings_booking_changelist"), {"outcome": "attended"})
    cleared = post_form(client, first, "outcome", outcome="")
    wrong = client.post(page_of(first, "outcome"), {"outcome": "late"})

    actor = f"editor@{tenant.app.slug}.example.com"
    assert (before, offered) == ([], [["no_show", ""], [], []])
    assert "The booking has not begun yet." in early
    assert "Outcome noted: no show." in shown[0]
    assert "<dd>attended</dd>" in shown[1]
    assert [str(one.id) for one in listed.context["cl"].result_list] == [first["id"]]
    assert "Outcome cleared." in cleared
    assert wrong.status_code == 404
    assert [step[:4] for step in steps(first)[1:]] == [("update", "confirmed", actor, "admin")] * 3
    assert Booking.objects.get(id=first["id"]).outcome is None


def test_end_links_after_confirmation(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = book(tenant, ada)
    client, page = enter(tenant), page_of(booking, "end_links")
    mails = Delivery.objects.count()

    offered = client.get(page_of(booking)).content.decode()
    question = client.get(page).content.decode()
    asked = Booking.objects.get(id=booking["id"]).link_version
    shown = post_form(client, booking, "end_links")

    row = Booking.objects.get(id=booking["id"])
    actor = f"editor@{tenant.app.slug}.example.com"
    message = "The links in earlier e-mails no longer work."
    assert f'href="{page}"' in offered
    assert "End all links of this booking?" in question
    assert "All links have ended. Later e-mails have new ones." in shown
    assert (asked, row.link_version, Delivery.objects.count()) == (0, 1, mails)
    assert steps(booking)[1:] == [("update", "confirmed", actor, "admin", message)]
    client.cookies["office_language"] = "de"
    assert "Die Links in früheren E-Mails funktionieren nicht mehr." in (
        client.get(page_of(booking)).content.decode()
    )


def test_past_booking_has_no_end_links_button(
    tenant: Tenant, ada: Any, enter: Enter, time_machine: Any
) -> None:
    booking = book(tenant, ada)
    time_machine.move_to(f"{DAY} 10:01Z")

    shown = enter(tenant).get(page_of(booking)).content.decode()

    assert page_of(booking, "end_links") not in shown


def test_reschedule_times_are_in_the_zone_of_the_resource(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    booking = book(tenant, ada)

    shown = post_form(enter(tenant), booking, "move", start=f"{DAY}T14:00", end=f"{DAY}T14:30")

    event = Booking.objects.get(id=booking["id"]).event
    assert "Rescheduled to Tuesday, 5 March 2030, 14:00 – 14:30 (Europe/Berlin)." in shown
    assert (event.start.isoformat(), event.end.isoformat()) == (
        f"{DAY}T13:00:00+00:00",
        f"{DAY}T13:30:00+00:00",
    )


def test_reschedule_to_a_taken_time_offers_other_times(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    booking, other = book(tenant, ada), book(tenant, ada, 14)
    client = enter(tenant)

    shown = refuse_move(client, booking, start=f"{DAY}T14:00", end=f"{DAY}T14:30")
    value = f"{DAY}T13:30:00+00:00/{DAY}T14:00:00+00:00"
    after = post_form(client, booking, "move", alternative=value)

    assert "The time is taken." in shown
    assert f'name="alternative" value="{value}"' in shown
    assert "<strong>Tuesday, 5 March 2030</strong> <button" in shown
    assert f'value="{value}">14:30</button>' in shown
    assert "Rescheduled to Tuesday, 5 March 2030, 14:30 – 15:00 (Europe/Berlin)." in after
    assert [step[0] for step in steps(other)] == ["confirm"]


def test_reschedule_to_another_resource_with_its_free_times(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    bob = tenant.make_resource("Bob", timezone="America/New_York")
    foreign = Tenant("other").make_resource("Eve")
    booking, _ = book(tenant, ada), book(tenant, bob, 5)
    client = enter(tenant)
    times = client.get(page_of(booking, "free_times"), {"resource_id": bob["id"]})
    offered = times.json()["data"]["times"]

    refused = client.get(page_of(booking, "free_times"), {"resource_id": foreign["id"]})
    shown = post_form(client, booking, "move", alternative=offered[0]["value"])
    same = post_form(
        client, booking, "move", start=f"{DAY}T10:00", end=f"{DAY}T10:30", resource_id=ada["id"]
    )

    assert (len(offered), offered[0]) == (
        12,
        {
            "value": f"2030-03-04T23:00:00+00:00/2030-03-04T23:30:00+00:00/{bob['id']}",
            "day": "Tuesday, 5 March 2030",
            "clock": "00:00",
        },
    )
    assert refused.status_code == 422
    assert "with Bob." in shown
    assert "with Ada." in same
    assert Booking.objects.get(id=booking["id"]).resource.name == "Ada"


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2030-03-31T02:30", "2030-03-31T03:30", "does not exist"),
        ("tomorrow", "later", "Invalid time"),
        (f"{DAY}T15:00", f"{DAY}T14:00", "The end must be after the start."),
        ("", "", "Invalid time"),
        ("\0", "9" * 400, "Invalid time"),
    ],
)
def test_reschedule_to_wrong_times_is_refused(
    tenant: Tenant, ada: Any, enter: Enter, start: str, end: str, words: str
) -> None:
    booking = book(tenant, ada)

    shown = refuse_move(enter(tenant), booking, start=start, end=end)

    assert words in shown
    assert [step[0] for step in steps(booking)] == ["confirm"]


def test_refused_reschedule_keeps_the_input(tenant: Tenant, ada: Any, enter: Enter) -> None:
    bob = tenant.make_resource("Bob", timezone="Europe/Berlin")
    booking, _ = book(tenant, ada), book(tenant, bob, 14)
    client = enter(tenant)
    given = {"start": f"{DAY}T14:00", "end": f"{DAY}T14:30", "resource_id": bob["id"]}

    taken = refuse_move(client, booking, **given, message="We <close> early.")
    backwards = refuse_move(client, booking, **given | {"end": f"{DAY}T13:00"})
    fresh = client.get(page_of(booking)).content.decode()

    def fields(page: str) -> list[str]:
        chosen = re.search(r'<option value="([^"]*)" selected', page)
        times = re.findall(r'type="datetime-local" value="([^"]*)"', page)
        return [*times, chosen[1] if chosen else ""]

    assert fields(taken) == list(given.values())
    assert "We &lt;close&gt; early.</textarea>" in taken
    assert fields(backwards) == [given["start"], f"{DAY}T13:00", bob["id"]]
    assert fields(fresh) == [f"{DAY}T09:00", f"{DAY}T09:30", ada["id"]]


def test_reschedule_sends_its_message(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = book(tenant, ada)
    given = {"start": f"{DAY}T14:00", "end": f"{DAY}T14:30", "message": "We close early."}

    post_form(enter(tenant), booking, "move", **given)

    assert steps(booking)[-1][-1] == "We close early."


@pytest.mark.parametrize(
    ("start", "status"), [("9999-12-31T23:59", 422), ("0001-01-01T00:00", 422)]
)
def test_free_times_at_the_first_and_last_date(
    tenant: Tenant, ada: Any, enter: Enter, start: str, status: int
) -> None:
    booking, client = book(tenant, ada), enter(tenant)

    answer = client.get(page_of(booking, "free_times"), {"start": start})

    assert (answer.status_code, answer.json().get("data", {}).get("times", [])) == (status, [])


def test_free_times_begin_on_the_chosen_day(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking, client = book(tenant, ada), enter(tenant)

    def first(start: str) -> Any:
        return client.get(page_of(booking, "free_times"), {"start": start})

    later = first("2030-03-07T09:00").json()["data"]["times"][0]
    wrong = [first(text).status_code for text in ("tomorrow", "\0", "9" * 400)]

    assert (later["day"], later["clock"]) == ("Thursday, 7 March 2030", "00:00")
    assert wrong == [422, 422, 422]


def delivery_page(delivery: Delivery, name: str = "change") -> str:
    return reverse(f"admin:notifications_delivery_{name}", args=[delivery.pk])


def end(delivery: Delivery) -> Delivery:
    ended = {"state": "failed", "next_at": None, "finished_at": delivery.due_at}
    Delivery.objects.filter(id=delivery.id).update(reason="no server", tries=3, **ended)
    return delivery


def test_redeliver_mail_after_confirmation(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = book(tenant, ada)
    mail = end(Delivery.objects.get(booking_id=booking["id"], recipient="customer"))
    client = enter(tenant)

    page = client.get(page_of(booking)).content.decode()
    asked = client.get(delivery_page(mail, "again"))
    mail.refresh_from_db()
    before = mail.state
    done = client.post(delivery_page(mail, "again"), follow=True)

    mail.refresh_from_db()
    assert f'href="{delivery_page(mail, "again")}"' in page
    assert (asked.context["title"], asked.context["sentence"], asked.context["lines"]) == (
        "Send again?",
        "Confirmation e-mail to the customer, marty@example.com.",
        ["One e-mail is sent now."],
    )
    assert before == "failed"
    assert messages_of(done) == [
        "Confirmation e-mail to the customer, marty@example.com will be sent again."
    ]
    assert (mail.state, mail.reason, mail.tries) == ("scheduled", "", 0)


def test_outdated_mail_has_no_redeliver_button(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = book(tenant, ada)
    mail = end(Delivery.objects.get(booking_id=booking["id"], recipient="customer"))
    tenant.put(f"/bookings/{booking['id']}/cancel")
    client = enter(tenant)

    page = client.get(page_of(booking)).content.decode()
    own_page = client.get(delivery_page(mail)).content.decode()
    asked = client.get(delivery_page(mail, "again"), follow=True)
    done = client.post(delivery_page(mail, "again"), follow=True)

    mail.refresh_from_db()
    assert delivery_page(mail, "again") not in page + own_page
    assert "It can't be sent again. The booking is cancelled." in own_page
    assert messages_of(asked) == ["It can't be sent again. The booking is cancelled."]
    assert messages_of(done) == [
        "Confirmation e-mail to the customer, marty@example.com: The booking is cancelled."
    ]
    assert mail.state == "failed"


def test_no_redelivery_while_emails_are_disabled(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = book(tenant, ada)
    mail = end(Delivery.objects.get(booking_id=booking["id"], recipient="customer"))
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"disable_emails": True}})
    client = enter(tenant)

    page = client.get(page_of(booking)).content.decode()
    own_page = client.get(delivery_page(mail)).content.decode()
    done = client.post(delivery_page(mail, "again"), follow=True)

    mail.refresh_from_db()
    assert delivery_page(mail, "again") not in page + own_page
    assert "The app's e-mails are off: nobody gets an e-mail." in page
    assert messages_of(done) == [
        "Confirmation e-mail to the customer, marty@example.com: The app's e-mails are off."
    ]
    assert mail.state == "failed"


@pytest.mark.usefixtures("expanded_calls")
def test_redeliver_call_with_its_logged_body(tenant: Tenant, ada: Any, enter: Enter) -> None:
    tenant.post("/webhooks", {"url": "https://hooks.example.com/in"})
    booking = book(tenant, ada)
    call = end(Delivery.objects.get(booking_id=booking["id"], type="webhook"))
    tenant.put(f"/bookings/{booking['id']}/cancel")

    asked = enter(tenant).get(delivery_page(call, "again"))

    assert (asked.context["sentence"], asked.context["lines"]) == (
        "Webhook call: confirmed to https://hooks.example.com/in.",
        ["The call contains the logged body."],
    )


def test_timeline_has_changes_mails_and_calls_in_order(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    tenant.post("/webhooks", {"url": "https://hooks.example.com/in", "states": ["confirmed"]})
    tenant.app.credentials.update(description="demo")
    reminder = {
        "type": "email",
        "settings": {"recipient": "customer"},
        "when": {"type": "before", "unit": "hours", "time": 1},
    }
    booking = book(tenant, ada, graph="confirm_decline", event_notifications=[reminder])
    client = enter(tenant)
    post_form(client, booking, "act", action="confirm", message="Welcome")
    expand_changes()

    entries = client.get(page_of(booking)).context["entries"]

    actor = f"editor@{tenant.app.slug}.example.com"
    done = [(entry.heading, entry.lines) for entry in entries if not entry.delivery]
    sent = sorted((entry.heading, entry.lines) for entry in entries if entry.delivery)
    assert done == [
        ("Created via API (key “demo”)", ()),
        (f"Confirmed by {actor} in the back office", ("Welcome",)),
    ]
    marty = ("marty@example.com",)
    assert sent == [
        ("Confirmation e-mail to the customer, queued", marty),
        ("Confirmation e-mail to the owner, queued", ()),
        ("Reminder e-mail to the customer, queued", marty),
        ("Webhook call (confirmed) to https://hooks.example.com/in, queued", ()),
        ("“Request received” e-mail to the customer, queued", marty),
        ("“Request received” e-mail to the owner, queued", ()),
    ]
    assert entries[-1].when == "Tue 5 Mar 2030, 08:00 CET"
    assert [entry.is_to_come for entry in entries] == [False] * 2 + [True] * 6


def test_the_timeline_has_writes_to_calendars(tenant: Tenant, ada: Any, enter: Enter) -> None:
    calendar = connect(ada)
    booking = book(tenant, ada)
    delivery = Delivery.objects.get(type="calendar")
    client = enter(tenant)

    entries = client.get(page_of(booking)).context["entries"]
    page = client.get(reverse("admin:notifications_delivery_change", args=[delivery.pk]))

    assert [
        (entry.icon, entry.heading, entry.lines) for entry in entries if entry.delivery == delivery
    ] == [("event", "Calendar entry (confirmed) to https://dav.example.com:443, queued", ())]
    assert page.context["title"] == "Calendar entry: confirmed"
    assert page.context["facts"] == []
    assert json.loads(page.context["further"]) == {
        "event_id": str(Booking.objects.get().event_id),
        "calendar_id": str(calendar.id),
    }


@pytest.mark.parametrize(
    ("term", "names"),
    [
        ("marty", ["Marty McFly", "Marty Feldman"]),
        ("MCFLY", ["Marty McFly"]),
        ("fly marty", ["Marty McFly"]),
        ("feldman@", ["Marty Feldman"]),
        ("FELDMAN@example.com", ["Marty Feldman"]),
        ("+49 (40) 123-45", ["Emmett Brown"]),
        ("0401234", []),
        ("401234", ["Emmett Brown"]),
        ("nobody", []),
        ("%", []),
        ("_", []),
        ("'", []),
    ],
)
@pytest.mark.matrix
def test_search_by_details_of_the_customer(
    tenant: Tenant, ada: Any, enter: Enter, term: str, names: list[str]
) -> None:
    people = [
        {"name": "Marty McFly", "email": "mcfly@example.com"},
        {"name": "Emmett Brown", "email": "doc@example.com", "phone": "+49 40 12345-0"},
        {"name": "Marty Feldman", "email": "feldman@example.com"},
    ]
    made = [book(tenant, ada, 9 + n, customer=person) for n, person in enumerate(people)]
    client = enter(tenant)

    shown = client.get(reverse("admin:bookings_booking_changelist"), {"q": term})
    found = [booking.customers.all()[0].name for booking in shown.context["cl"].result_list]
    by_id = Booking.objects.filter(search_bookings_by_term(made[1]["id"], Booking.objects.all()))

    assert sorted(found) == sorted(names)
    assert not Booking.objects.filter(search_bookings_by_term("\0", Booking.objects.all())).exists()
    assert [str(booking.id) for booking in by_id] == [made[1]["id"]]


def test_filters_of_the_list(tenant: Tenant, ada: Any, enter: Enter) -> None:
    bob = tenant.make_resource("Bob")
    project = tenant.make_project(bob["id"])
    first = book(tenant, ada, graph="confirm_decline")
    through = {"project_id": project["id"], "settings": {"enforce_availability": False}}
    second = book(tenant, bob, 10, **through)
    third = book(tenant, ada, start="2030-03-06 09:00:00", end="2030-03-06 10:00:00")
    client = enter(tenant)

    def found(**query: str) -> list[str]:
        page = client.get(reverse("admin:bookings_booking_changelist"), query)
        return [str(booking.id) for booking in page.context["cl"].result_list]

    assert found() == [third["id"], second["id"], first["id"]]
    assert found(state="tentative") == [first["id"]]
    assert found(graph="confirm_decline") == [first["id"]]
    assert found(resource__id__exact=bob["id"]) == [second["id"]]
    assert found(project__id__exact=project["id"]) == [second["id"]]
    assert found(day=DAY) == [second["id"], first["id"]]
    assert found(event__start_from="2030-03-06", event__start_to="2030-03-06") == [third["id"]]
    for wrong in ("yesterday", "0001-01-01", "9999-12-31", "2030-02-30"):
        assert len(found(day=wrong, event__start_from=wrong, event__start_to=wrong)) == 3
    assert found(day="yesterday") == [third["id"], second["id"], first["id"]]


def test_tabs_of_the_list(tenant: Tenant, ada: Any, enter: Enter) -> None:
    late, asked = book(tenant, ada, 12), book(tenant, ada, 10, graph="confirm_decline")
    soon, off = book(tenant, ada, 9), book(tenant, ada, 14)
    tenant.put(f"/bookings/{off['id']}/cancel")
    gone = [
        book(tenant, ada, start=f"2020-03-0{day} 09:00:00", end=f"2020-03-0{day} 10:00:00")
        for day in (4, 5)
    ]
    client = enter(tenant)

    def found(**query: str) -> list[str]:
        page = client.get(reverse("admin:bookings_booking_changelist"), query)
        return [str(booking.id) for booking in page.context["cl"].result_list]

    assert found(tab="upcoming") == [soon["id"], asked["id"], late["id"]]
    assert found(tab="past") == [gone[1]["id"], gone[0]["id"]]
    assert found(tab="pending") == [asked["id"]]
    assert found(tab="?") == found()
    by_start = [gone[0], gone[1], soon, asked, late, off]
    assert found(o="1") == [booking["id"] for booking in by_start]
    assert found(o="-1", tab="upcoming") == [late["id"], asked["id"], soon["id"]]


def test_new_booking_opens_the_calendar(tenant: Tenant, ada: Any, enter: Enter) -> None:
    path = reverse("admin:bookings_booking_changelist")

    pages = {role: enter(tenant, role).get(path) for role in (Membership.EDITOR, "viewer")}
    opened = enter(tenant, "owner").get(f"{path}new/")

    shown = {role: "New booking" in page.content.decode() for role, page in pages.items()}
    assert shown == {"editor": True, "viewer": False}
    assert (opened.status_code, opened.headers["Location"]) == (302, "/admin/calendar/?new=1")


def test_bulk_actions_are_applied_independently(tenant: Tenant, ada: Any, enter: Enter) -> None:
    asked, agreed = book(tenant, ada, graph="confirm_decline"), book(tenant, ada, 14)

    answer = enter(tenant).post(
        reverse("admin:bookings_booking_changelist"),
        {"action": "apply_confirm", "_selected_action": [asked["id"], agreed["id"]]},
        follow=True,
    )

    told = [str(message) for message in answer.context["messages"]]
    words = "Marty McFly – Meeting, Tue 5 Mar 2030, 14:00 CET"
    assert told == [
        f"{words}: Confirm: not possible, the booking is confirmed.",
        "1 booking confirmed.",
    ]
    assert [step[0] for step in steps(asked)] == ["create", "confirm"]


def test_viewer_cannot_change_bookings(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = book(tenant, ada, graph="confirm_decline")
    mail = Delivery.objects.filter(booking_id=booking["id"]).first()
    client = enter(tenant, Membership.VIEWER)

    tries = [
        client.post(page_of(booking, "act"), {"action": "confirm"}).status_code,
        client.post(page_of(booking, "move"), {"start": f"{DAY}T1", "end": f"{DAY}T2"}).status_code,
        client.get(delivery_page(mail, "again")).status_code,
        client.post(delivery_page(mail, "again")).status_code,
        client.post(page_of(booking, "outcome"), {"outcome": "attended"}).status_code,
        client.get(page_of(booking, "end_links")).status_code,
        client.post(page_of(booking, "end_links")).status_code,
        client.get(page_of(booking)).status_code,
    ]
    client.post(
        reverse("admin:bookings_booking_changelist"),
        {"action": "apply_confirm", "_selected_action": [booking["id"]]},
    )

    assert tries == [403] * 7 + [200]
    assert [step[0] for step in steps(booking)] == ["create"]


def test_get_of_actions_is_refused(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = book(tenant, ada, graph="confirm_decline")
    client = enter(tenant)

    tries = [
        client.get(page_of(booking, name), {"action": "confirm"}).status_code
        for name in ("act", "move")
    ]

    assert tries == [405, 405]
    assert [step[0] for step in steps(booking)] == ["create"]


def rows_of(client: Client, **query: str) -> tuple[list[dict[str, str]], list[int]]:
    """The exported lines, and how many came with each request."""
    pieces, counts, after = [], [], ""
    while after is not None:
        asked = query | ({"after": after} if after else {})
        piece = client.get(reverse("admin:bookings_booking_export_rows"), asked).json()
        pieces.append(piece["csv"])
        counts.append(piece["count"])
        after = piece["next"]
    return list(csv.DictReader(io.StringIO("".join(pieces)))), counts


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"event__start_from": "2026-10-01", "event__start_to": "2026-10-31"}, "2026-10"),
        ({"event__start_from": "2026-10-01", "event__start_to": "2026-11-30"}, None),
        ({"event__start_from": "2026-10-05", "event__start_to": "2026-10-11"}, None),
        ({"event__start_from": "2026-10-01"}, ""),
    ],
)
def test_export_file_is_named_by_its_dates(
    tenant: Tenant, enter: Enter, query: dict[str, str], expected: str | None
) -> None:
    days = "-".join(query.values()) if expected is None else expected

    page = enter(tenant, Membership.VIEWER).get(reverse("admin:bookings_booking_export"), query)

    assert page.context["file_name"] == (f"bookings-{days}.csv" if days else "bookings.csv")
    days = [date.fromisoformat(day) for day in query.values()]
    words = " – ".join(f"{day.day} {day:%b} {day.year}" for day in days)
    assert page.context["filters"] == [("start", words if days[1:] else f"{words} –")]


def test_buttons_above_the_list_keep_filters(tenant: Tenant, ada: Any, enter: Enter) -> None:
    client = enter(tenant)

    page = client.get(reverse("admin:bookings_booking_changelist"), {"state": "confirmed"})

    paths = [button["path"] for button in page.context["actions_list"]]
    assert [path.partition("?")[2] for path in paths] == ["state=confirmed"] * 2


def test_export_has_all_rows_of_the_filtered_list(
    tenant: Tenant, ada: Any, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("office.bookings.export.BATCH", 2)
    customer = {"name": '=1+1 "x"', "email": "marty@example.com", "phone": "+49 40 1"}
    made = [book(tenant, ada, 9 + n, customer=customer, where='"A", B') for n in range(4)]
    asked = book(tenant, ada, 14, graph="confirm_decline")
    client = enter(tenant, Membership.VIEWER)

    page = client.get(reverse("admin:bookings_booking_export"), {"state": "confirmed"})
    lines, counts = rows_of(client, state="confirmed")
    some, _ = rows_of(client, state="tentative")

    assert page.context["total"] == 4
    assert page.context["rows_url"] == "/admin/bookings/booking/export/rows/?state=confirmed"
    assert counts == [2, 2, 0]
    assert [line["id"] for line in lines] == [one["id"] for one in reversed(made)]
    assert [line["id"] for line in some] == [asked["id"]]
    created = lines[-1].pop("created_at")
    assert created.endswith(("+01:00", "+02:00"))
    assert lines[-1] == {
        "id": made[0]["id"],
        "state": "confirmed",
        "graph": "instant",
        "start": f"{DAY}T09:00:00+01:00",
        "end": f"{DAY}T09:30:00+01:00",
        "timezone": "Europe/Berlin",
        "what": "Meeting",
        "where": '"A", B',
        "resource": "Ada",
        "project": "",
        "customers": '\'=1+1 "x"',
        "emails": "marty@example.com",
        "phones": "'+49 40 1",
        "quantity": "1",
        "party_size": "",
        "place": "",
        "resources": "Ada",
        "steps": "",
    }


@pytest.mark.parametrize("count", [1, 3, pytest.param(300, marks=pytest.mark.deep)])
def test_query_count_of_the_list_is_constant(
    tenant: Tenant, ada: Any, enter: Enter, count: int, django_assert_num_queries: Any
) -> None:
    start = [f"2030-{1 + n // 28:02}-{1 + n % 28:02}" for n in range(count)]
    for day in start:
        made = tenant.book(resource_id=ada["id"], start=f"{day} 09:00:00", end=f"{day} 09:30:00")
        assert made.status == 201
    client = enter(tenant)
    client.get(reverse("admin:bookings_booking_changelist"))

    with django_assert_num_queries(9):
        client.get(reverse("admin:bookings_booking_changelist"))
