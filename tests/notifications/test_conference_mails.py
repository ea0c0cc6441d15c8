"""E-mails of a booking with a video call: the link in the first e-mail, or in one that follows."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
import vobject
from django.utils import timezone

from availability.models import Calendar
from bookings.models import Booking
from bookings.services import store_conference_link
from external_calendars.models import Connection
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.leases import claim_due
from notifications.outbox.results import record_results
from notifications.outbox.senders import prepare_batch
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.delivery_faults import delivery_faults
from tests.external_calendars.mirrored import connect
from tests.notifications.test_dispatcher import book, hook, soon, states
from tests.sinks import HookSink, Mail, MailSink
from tests.world import Tenant

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.both_databases,
    pytest.mark.usefixtures("expanded_calls"),
]

LINK = "https://meet.google.example/abc-defg-hij"
FOLLOWS = "The link for the video call follows."
MARTY, ADA = "marty@example.com", "ada@example.com"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada Lovelace", email=ADA)


@pytest.fixture
def google(ada: Any) -> Calendar:
    """Her connected calendar, which makes the links."""
    return connect(ada, provider="google")


@pytest.fixture
def meet(tenant: Tenant, ada: Any) -> str:
    return project(tenant, ada, provider="meet")


def project(tenant: Tenant, ada: Any, **conference: Any) -> str:
    made = tenant.make_project(ada["id"], settings={"conference": conference})
    return made["id"]


def reserve(tenant: Tenant, ada: Any, project_id: str, **given: Any) -> Any:
    return book(tenant, resource=ada, project_id=project_id, enforce_availability=False, **given)


def make_link(booking: Any, url: str = LINK) -> bool:
    """As the calendar's writer does once the provider has answered."""
    event_id = Booking.objects.get(id=booking["id"]).event_id
    return store_conference_link(event_id, url, now=timezone.now())


def pass_wait() -> None:
    """As if ten seconds had passed since the booking."""
    Delivery.objects.filter(type="email", state="scheduled", tries=0).update(
        next_at=timezone.now() - timedelta(seconds=1)
    )


def video_rows(mail: Mail) -> list[str]:
    """The detail `Video call` of the text, and whether the HTML has the same."""
    lines = iter(mail.text.splitlines())
    label = next((line for line in lines if line.startswith("Video call:")), None)
    if label is None:
        return []
    rows = [label.removeprefix("Video call:").strip()]
    for line in lines:
        if not line.startswith("    "):
            break
        rows.append(line.strip())
    html = mail.message.get_body(("html",)).get_content()
    for row in rows:
        word = row.split(" ")[-1]
        assert (f'<a href="{word}">{word}</a>' if word.startswith("https://") else row) in html
    return rows


@pytest.fixture
def sent(mails: MailSink) -> Any:
    """sent() -> (to, first word of the subject, detail `Video call`) of what went out since."""

    def read() -> list[tuple[str, str, list[str]]]:
        for _ in range(3):
            run_dispatcher("email")
        found = [(mail.to[0], mail.subject.split(":")[0], video_rows(mail)) for mail in mails.mails]
        mails.mails.clear()
        return sorted(found)

    return read


def entries_of(mail: Mail) -> list[Any]:
    parts = [one for one in mail.message.walk() if one.get_content_type() == "text/calendar"]
    return vobject.readOne(parts[0].get_content()).vevent_list


def entry_of(mail: Mail) -> Any:
    [entry] = entries_of(mail)
    return entry


def conference_of(tenant: Tenant, booking: Any) -> Any:
    return tenant.get(f"/bookings/{booking['id']}").data["conference"]


def act(tenant: Tenant, booking: Any, action: str) -> None:
    assert tenant.put(f"/bookings/{booking['id']}/{action}").status == 200


# --- Links without a calendar ---------------------------------------------------------------------
def test_mails_with_a_template(tenant: Tenant, ada: Any, mails: MailSink, sent: Any) -> None:
    template = "https://video.example/{booking_id}"
    booking = reserve(tenant, ada, project(tenant, ada, provider="template", template=template))
    link = f"https://video.example/{booking['id']}"

    run_dispatcher("email")

    entries = [entry_of(mail) for mail in mails.mails]
    assert [
        (
            entry.location.value,
            entry.url.value,
            entry.description.value,
            entry.conference.value,
            entry.conference.params,
        )
        for entry in entries
    ] == [
        (
            link,
            link,
            f"Video call: {link}",
            link,
            {"VALUE": ["URI"], "FEATURE": ["AUDIO,VIDEO"]},
        )
    ] * 2
    assert sent() == [(ADA, "Confirmed", [link]), (MARTY, "Confirmed", [link])]


def test_place_stays_beside_the_link(tenant: Tenant, ada: Any, mails: MailSink, sent: Any) -> None:
    template = "https://video.example/{booking_id}"
    project_id = project(tenant, ada, provider="template", template=template)
    booking = reserve(tenant, ada, project_id, where="Hall 1", description="Bring your card.")
    link = f"https://video.example/{booking['id']}"

    run_dispatcher("email")

    entry = entry_of(mails.mails[0])
    assert entry.location.value == "Hall 1"
    assert entry.description.value == f"Bring your card.\n\nVideo call: {link}"
    assert "Where:" in mails.mails[0].text
    assert sent() == [(ADA, "Confirmed", [link]), (MARTY, "Confirmed", [link])]


def test_cancellation_has_no_link(tenant: Tenant, ada: Any, mails: MailSink, sent: Any) -> None:
    booking = reserve(tenant, ada, project(tenant, ada, provider="jitsi"))
    sent()
    act(tenant, booking, "cancel")

    run_dispatcher("email")

    assert [hasattr(entry_of(mail), "conference") for mail in mails.mails] == [False, False]
    assert sent() == [(ADA, "Cancelled", []), (MARTY, "Cancelled", [])]


def test_request_has_the_link_once_it_is_confirmed(tenant: Tenant, ada: Any, sent: Any) -> None:
    template = "https://video.example/{booking_id}"
    project_id = project(tenant, ada, provider="template", template=template)
    booking = reserve(tenant, ada, project_id, graph="confirm_decline")
    assert sent() == [(ADA, "Request", []), (MARTY, "Requested", [])]

    act(tenant, booking, "confirm")

    link = f"https://video.example/{booking['id']}"
    assert sent() == [(ADA, "Confirmed", [link]), (MARTY, "Confirmed", [link])]


def test_series_names_the_link_of_each_occurrence(
    tenant: Tenant, ada: Any, mails: MailSink, sent: Any
) -> None:
    template = "https://video.example/{booking_id}"
    project_id = project(tenant, ada, provider="template", template=template)
    booking = reserve(tenant, ada, project_id, recurrence="FREQ=WEEKLY;COUNT=2")
    series = tenant.get(f"/bookings/{booking['id']}?include=series").data["series"]
    links = [f"https://video.example/{each['booking_id']}" for each in series["occurrences"]]

    run_dispatcher("email")

    parts = [
        one for one in mails.mails[0].message.walk() if one.get_content_type() == "text/calendar"
    ]
    entries = vobject.readOne(parts[0].get_content()).vevent_list
    assert [entry.url.value for entry in entries] == links
    found = sent()
    assert [(to, [row.split(" ")[-1] for row in rows]) for to, _, rows in found] == [
        (ADA, links),
        (MARTY, links),
    ]


# --- Links that a calendar makes ------------------------------------------------------------------
@pytest.mark.usefixtures("google")
def test_first_mails_wait_for_the_link(
    tenant: Tenant, ada: Any, meet: str, mails: MailSink, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet)
    assert sent() == []
    assert conference_of(tenant, booking) == {"provider": "meet", "url": None, "problem": None}

    assert make_link(booking) is True

    run_dispatcher("email")
    assert entry_of(mails.mails[0]).url.value == LINK
    assert sent() == [(ADA, "Confirmed", [LINK]), (MARTY, "Confirmed", [LINK])]
    assert conference_of(tenant, booking) == {"provider": "meet", "url": LINK, "problem": None}
    assert delivery_faults() == []


@pytest.mark.usefixtures("google")
def test_waiting_mails_are_due_ten_seconds_later(tenant: Tenant, ada: Any, meet: str) -> None:
    reserve(tenant, ada, meet)

    rows = Delivery.objects.filter(type="email")
    assert [row.next_at - row.created_at > timedelta(seconds=9) for row in rows] == [True, True]
    assert [row.next_at - row.created_at < timedelta(seconds=20) for row in rows] == [True, True]


@pytest.mark.usefixtures("google")
def test_late_link_follows_once(
    tenant: Tenant, ada: Any, meet: str, mails: MailSink, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet)
    pass_wait()
    assert sent() == [(ADA, "Confirmed", [FOLLOWS]), (MARTY, "Confirmed", [FOLLOWS])]

    assert make_link(booking) is True
    assert make_link(booking) is False
    assert make_link(booking, f"{LINK}-other") is False

    run_dispatcher("email")
    assert [(entry_of(mail).url.value, entry_of(mail).sequence.value) for mail in mails.mails] == [
        (LINK, "1")
    ] * 2
    assert sent() == [(ADA, "Video call", [LINK]), (MARTY, "Video call", [LINK])]
    assert sent() == []
    assert delivery_faults() == []


@pytest.mark.usefixtures("google")
def test_link_that_arrives_while_a_worker_is_lost(
    tenant: Tenant, ada: Any, meet: str, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet)
    pass_wait()
    Delivery.objects.filter(type="email").update(state="sending", tries=1)  # by another worker
    assert make_link(booking) is True
    assert [row[1] for row in states(type="email")] == ["confirmed"] * 2 + ["conference"] * 2

    Delivery.objects.filter(kind="confirmed").update(next_at=timezone.now())  # it was lost
    assert sent() == [(ADA, "Confirmed", [LINK]), (MARTY, "Confirmed", [LINK])]
    assert states(kind="conference") == [
        ("email", "conference", "customer", "cancelled"),
        ("email", "conference", "owner", "cancelled"),
    ]


@pytest.mark.usefixtures("google")
def test_retry_after_a_refusal_has_the_link(
    tenant: Tenant, ada: Any, meet: str, mails: MailSink, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet)
    pass_wait()
    mails.answer = lambda to: "451 later" if to == MARTY else None
    assert sent() == [(ADA, "Confirmed", [FOLLOWS])]

    make_link(booking)
    mails.answer = lambda to: None
    Delivery.objects.filter(state="scheduled", tries=1).update(next_at=timezone.now())

    assert sent() == [(ADA, "Video call", [LINK]), (MARTY, "Confirmed", [LINK])]


@pytest.mark.usefixtures("google")
def test_link_that_never_arrives(tenant: Tenant, ada: Any, meet: str, sent: Any) -> None:
    booking = reserve(tenant, ada, meet)
    pass_wait()

    assert sent() == [(ADA, "Confirmed", [FOLLOWS]), (MARTY, "Confirmed", [FOLLOWS])]
    assert sent() == []
    assert conference_of(tenant, booking) == {"provider": "meet", "url": None, "problem": None}


@pytest.mark.usefixtures("google")
def test_cancelled_before_the_link_arrives(tenant: Tenant, ada: Any, meet: str, sent: Any) -> None:
    booking = reserve(tenant, ada, meet)
    pass_wait()
    sent()
    act(tenant, booking, "cancel")

    assert make_link(booking) is False

    assert sent() == [(ADA, "Cancelled", []), (MARTY, "Cancelled", [])]
    assert conference_of(tenant, booking) is None


@pytest.mark.usefixtures("google")
def test_cancelled_while_the_mails_wait(tenant: Tenant, ada: Any, meet: str, sent: Any) -> None:
    booking = reserve(tenant, ada, meet)
    act(tenant, booking, "cancel")
    assert sent() == []  # a cancellation waits for the confirmation

    pass_wait()

    assert sent() == [
        (ADA, "Cancelled", []),
        (ADA, "Confirmed", []),
        (MARTY, "Cancelled", []),
        (MARTY, "Confirmed", []),
    ]


@pytest.mark.usefixtures("google")
def test_moved_before_the_link_arrives(
    tenant: Tenant, ada: Any, meet: str, mails: MailSink, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet)
    pass_wait()
    sent()
    start = soon(hours=60)
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    assert tenant.post(f"/bookings/{booking['id']}/reschedule", times).status == 200
    assert sent() == [(ADA, "New time", [FOLLOWS]), (MARTY, "New time", [FOLLOWS])]

    make_link(booking)

    run_dispatcher("email")
    assert [entry_of(mail).dtstart.value for mail in mails.mails] == [start, start]
    assert sent() == [(ADA, "Video call", [LINK]), (MARTY, "Video call", [LINK])]


@pytest.mark.usefixtures("google")
def test_moved_booking_keeps_its_link(tenant: Tenant, ada: Any, meet: str, sent: Any) -> None:
    booking = reserve(tenant, ada, meet)
    make_link(booking)
    sent()
    start = soon(hours=60)
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    assert tenant.post(f"/bookings/{booking['id']}/reschedule", times).status == 200

    assert sent() == [(ADA, "New time", [LINK]), (MARTY, "New time", [LINK])]


@pytest.mark.usefixtures("google")
def test_moved_while_the_mail_with_the_link_waits(
    tenant: Tenant, ada: Any, meet: str, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet)
    pass_wait()
    sent()
    make_link(booking)
    start = soon(hours=60)
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    assert tenant.post(f"/bookings/{booking['id']}/reschedule", times).status == 200

    assert sent() == [(ADA, "New time", [LINK]), (MARTY, "New time", [LINK])]


@pytest.mark.usefixtures("google")
def test_seats_share_the_link_of_their_group(
    tenant: Tenant, ada: Any, meet: str, sent: Any
) -> None:
    start = soon()
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    group = make_group(tenant, ada, project_id=meet, where="", **times)
    ann = seat_in(tenant, group, ANN)
    pass_wait()
    assert sent() == [
        (ADA, "Confirmed", [FOLLOWS]),
        ("ann@example.com", "Confirmed", [FOLLOWS]),
    ]
    bob = seat_in(tenant, group, BOB)
    assert sent() == []

    assert make_link(bob) is True

    assert sent() == [
        (ADA, "Confirmed", [LINK]),
        (ADA, "Video call", [LINK]),
        ("ann@example.com", "Video call", [LINK]),
        ("bob@example.com", "Confirmed", [LINK]),
    ]
    wanted = {"provider": "meet", "url": LINK, "problem": None}
    assert [conference_of(tenant, each) for each in (group, ann, bob)] == [wanted] * 3
    act(tenant, ann, "cancel_by_customer")
    assert [conference_of(tenant, each) for each in (group, ann, bob)] == [wanted, None, wanted]


@pytest.mark.usefixtures("google")
def test_series_waits_for_all_links(tenant: Tenant, ada: Any, meet: str, sent: Any) -> None:
    booking = reserve(tenant, ada, meet, recurrence="FREQ=WEEKLY;COUNT=2")
    series = tenant.get(f"/bookings/{booking['id']}?include=series").data["series"]
    first, second = ({"id": each["booking_id"]} for each in series["occurrences"])
    make_link(second, f"{LINK}-2")
    assert sent() == []

    make_link(first, f"{LINK}-1")

    found = [(to, word, [row.split(" ")[-1] for row in rows]) for to, word, rows in sent()]
    links = [f"{LINK}-1", f"{LINK}-2"]
    assert found == [(ADA, "Confirmed", links), (MARTY, "Confirmed", links)]


@pytest.mark.usefixtures("google")
def test_late_links_of_a_series_follow_in_one_mail(
    tenant: Tenant, ada: Any, meet: str, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet, recurrence="FREQ=WEEKLY;COUNT=2")
    series = tenant.get(f"/bookings/{booking['id']}?include=series").data["series"]
    first, second = ({"id": each["booking_id"]} for each in series["occurrences"])
    pass_wait()
    assert sent() == [(ADA, "Confirmed", [FOLLOWS]), (MARTY, "Confirmed", [FOLLOWS])]

    make_link(first, f"{LINK}-1")
    assert sent() == []
    make_link(second, f"{LINK}-2")

    found = [(to, word, [row.split(" ")[-1] for row in rows]) for to, word, rows in sent()]
    links = [f"{LINK}-1", f"{LINK}-2"]
    assert found == [(ADA, "Video call", links), (MARTY, "Video call", links)]


@pytest.mark.usefixtures("google")
def test_erased_customer_gets_no_link(tenant: Tenant, ada: Any, meet: str, sent: Any) -> None:
    booking = reserve(tenant, ada, meet)
    pass_wait()
    sent()
    assert tenant.post("/customers/erase", {"email": MARTY}).status == 200

    make_link(booking)

    assert sent() == [(ADA, "Video call", [LINK])]


@pytest.mark.usefixtures("google")
def test_confirmation_of_a_request_waits_for_the_link(
    tenant: Tenant, ada: Any, meet: str, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet, graph="confirm_decline")
    assert sent() == [(ADA, "Request", []), (MARTY, "Requested", [])]
    assert make_link(booking) is False
    act(tenant, booking, "confirm")
    assert sent() == []

    assert make_link(booking) is True

    assert sent() == [(ADA, "Confirmed", [LINK]), (MARTY, "Confirmed", [LINK])]


def test_without_a_calendar_no_link_is_promised(
    tenant: Tenant, ada: Any, meet: str, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet)

    assert sent() == [(ADA, "Confirmed", []), (MARTY, "Confirmed", [])]
    assert conference_of(tenant, booking) == {
        "provider": "meet",
        "url": None,
        "problem": "no_calendar",
    }


def test_calendar_that_is_connected_later_makes_the_link(
    tenant: Tenant, ada: Any, meet: str, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet)
    sent()
    connect(ada, provider="google")

    make_link(booking)

    assert sent() == [(ADA, "Video call", [LINK]), (MARTY, "Video call", [LINK])]


def test_calendar_with_a_problem_promises_no_link(
    tenant: Tenant, ada: Any, meet: str, google: Calendar, sent: Any
) -> None:
    Connection.objects.filter(calendar=google).update(problem="unauthorized")
    booking = reserve(tenant, ada, meet)

    assert sent() == [(ADA, "Confirmed", []), (MARTY, "Confirmed", [])]
    assert conference_of(tenant, booking) == {
        "provider": "meet",
        "url": None,
        "problem": "calendar_problem",
    }


@pytest.mark.usefixtures("google")
def test_calendar_of_another_provider_promises_no_link(tenant: Tenant, ada: Any, sent: Any) -> None:
    booking = reserve(tenant, ada, project(tenant, ada, provider="teams"))

    assert sent() == [(ADA, "Confirmed", []), (MARTY, "Confirmed", [])]
    assert conference_of(tenant, booking)["problem"] == "no_calendar"


@pytest.mark.usefixtures("google")
def test_webhook_is_told_of_the_link(tenant: Tenant, ada: Any, meet: str, hooks: HookSink) -> None:
    hook(tenant, hooks, kinds=["booking.confirmed", "booking.updated"])
    booking = reserve(tenant, ada, meet)
    make_link(booking)

    run_dispatcher("webhook")

    calls = [(call.event, call.json["conference"]) for call in hooks.calls]
    assert sorted(calls, key=lambda call: call[0]) == [
        ("booking.confirmed", {"provider": "meet", "url": None, "problem": None}),
        ("booking.updated", {"provider": "meet", "url": LINK, "problem": None}),
    ]


@pytest.mark.usefixtures("google")
@pytest.mark.parametrize(
    "url",
    ["http://meet.example/a", "https://meet.example/a b", f"https://meet.example/{'a' * 500}", ""],
)
def test_only_https_links_are_stored(tenant: Tenant, ada: Any, meet: str, url: str) -> None:
    booking = reserve(tenant, ada, meet)

    with pytest.raises(ValueError, match="not the https address of a video call"):
        make_link(booking, url)

    assert conference_of(tenant, booking)["url"] is None


def test_unknown_event_stores_no_link() -> None:
    assert store_conference_link(uuid.uuid4(), LINK, now=timezone.now()) is False


@pytest.mark.usefixtures("google")
def test_bulk_sends_a_mail_for_each_link(tenant: Tenant, ada: Any, meet: str, sent: Any) -> None:
    start = soon()
    bookings = [
        {
            "project_id": meet,
            "resource_id": ada["id"],
            "what": "Meeting",
            "customer": {"name": "Marty McFly", "email": MARTY},
            "settings": {"enforce_availability": False},
            "start": (start + timedelta(hours=hour)).isoformat(),
            "end": (start + timedelta(hours=hour + 1)).isoformat(),
        }
        for hour in (0, 2)
    ]
    answer = tenant.post("/bookings/bulk", {"bookings": bookings})
    made = [each["booking"] for each in answer.data]
    assert sent() == []

    for number, booking in enumerate(made):
        make_link(booking, f"{LINK}-{number}")

    assert sent() == [
        (to, "Confirmed", [f"{LINK}-{number}"]) for to in (ADA, MARTY) for number in (0, 1)
    ]


@pytest.mark.usefixtures("google")
def test_link_that_arrives_between_composing_and_sending(
    tenant: Tenant, ada: Any, meet: str, sent: Any
) -> None:
    booking = reserve(tenant, ada, meet)
    pass_wait()
    rows = claim_due("email", 10)
    assert rows is not None
    sends, _ = prepare_batch(rows, now=timezone.now())  # without the link

    assert make_link(booking) is True
    record_results([(row, send()) for row, send in sends])

    assert sent() == [
        (ADA, "Confirmed", [FOLLOWS]),
        (ADA, "Video call", [LINK]),
        (MARTY, "Confirmed", [FOLLOWS]),
        (MARTY, "Video call", [LINK]),
    ]
