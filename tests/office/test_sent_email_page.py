"""What was sent: the page of a delivered e-mail, for everybody who may see deliveries."""

import re
from typing import Any
from urllib.parse import unquote

import pytest
from django.core import mail as django_mail
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Membership
from notifications.models import Delivery, SentEmail
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.redeliver import redeliver
from tests.bookings.booking_drafts import MARTY
from tests.notifications.test_dispatcher import book, first_resource, make_due, reminder, soon
from tests.office.conftest import Enter, Visit, member_of
from tests.office.test_tasks_in_a_browser import Person
from tests.world import Tenant, hours

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = re.compile(r"(?:signature|token)=([\w.%~-]{12,})")
SECTION = "section[aria-labelledby=sent]"


def page_of(delivery: Delivery, page: str = "change") -> str:
    return reverse(f"admin:notifications_delivery_{page}", args=[delivery.pk])


def section_of(html: str) -> str:
    """The text of the part "What was sent"."""
    [part] = re.findall(r'<section[^>]*aria-labelledby="sent">(.*?)</section>', html, re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", part).split())


def test_viewer_reads_the_mail_without_tokens(tenant: Tenant, enter: Enter) -> None:
    book(tenant, what="Check-up", event_notifications=[reminder()])
    book(tenant, soon() + hours(5), graph="confirm_decline")
    run_dispatcher("email")
    make_due(kind="reminder")
    run_dispatcher("email")
    whole = "\n".join(sent.message().as_string() for sent in django_mail.outbox)
    parts = [str(part) for sent in django_mail.outbox for part, _ in sent.alternatives]
    bodies = [sent.body for sent in django_mail.outbox]
    tokens = set(TOKEN.findall("\n".join([whole, *parts, *bodies])))
    viewer = enter(tenant, Membership.VIEWER)

    shown = []
    for delivery in Delivery.objects.filter(type="email", state="delivered"):
        shown.append(viewer.get(page_of(delivery)).content.decode())
        shown.append(viewer.get(page_of(delivery, "html")).content.decode())

    assert (len(shown), len(tokens) >= 6) == (10, True)
    text = unquote("\n".join(shown))
    assert [token for token in tokens if unquote(token) in text] == []
    assert "[link]" in text


def test_page_has_subject_text_and_calendar_file(tenant: Tenant, enter: Enter) -> None:
    book(tenant, what="Check-up")
    run_dispatcher("email")
    [sent] = [one for one in django_mail.outbox if one.to == [MARTY["email"]]]
    delivery = Delivery.objects.get(recipient="customer")

    page = enter(tenant, Membership.VIEWER).get(page_of(delivery))

    copy = page.context["sent"]
    assert (copy.subject, copy.to) == (sent.subject, [MARTY["email"]])
    html = page.content.decode()
    assert f"Subject {copy.subject} To marty@example.com Sent " in section_of(html)
    assert "Your booking is confirmed" in copy.text and "BEGIN:VCALENDAR" in copy.calendar
    assert 'sandbox title="The e-mail as HTML"' in html


def test_frame_runs_and_loads_nothing(tenant: Tenant, enter: Enter) -> None:
    tenant.put("/templates/confirmed_customer", {"html": "<script>x</script><img src=//a.example>"})
    book(tenant)
    run_dispatcher("email")

    frame = enter(tenant, Membership.VIEWER).get(
        page_of(Delivery.objects.get(recipient="customer"), "html")
    )

    assert frame.content.decode() == "<script>x</script><img src=//a.example>"
    assert frame.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert frame.headers["Content-Security-Policy"] == (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox;"
        " frame-ancestors 'self'"
    )


def test_mail_is_shown_as_it_was_sent(tenant: Tenant, enter: Enter) -> None:
    """Not with today's data; each sending by itself."""
    book(tenant, what="Check-up")
    run_dispatcher("email")
    tenant.put("/templates/confirmed_customer", {"subject": "New words"})
    delivery = Delivery.objects.get(recipient="customer")
    viewer = enter(tenant, Membership.VIEWER)
    before = viewer.get(page_of(delivery)).context["sent"].subject
    redeliver(delivery, now=timezone.now())
    run_dispatcher("email")

    first, second = SentEmail.objects.filter(delivery=delivery).order_by("id")

    again = viewer.get(page_of(delivery))
    old = viewer.get(page_of(delivery), {"sent": str(first.id)})
    assert (again.context["sent"].subject, again.context["sent_copy"]) == ("New words", second)
    assert before == old.context["sent"].subject
    assert old.context["sent"].subject.startswith("Confirmed: Check-up, ")
    assert "Sent several times:" in section_of(again.content.decode())


def test_secret_mail_shows_its_subject_alone(tenant: Tenant, enter: Enter) -> None:
    project = tenant.make_project(
        first_resource(tenant)["id"], settings={"verify_email": True, "published": True}
    )
    answer = tenant.widget().post(
        "/bookings",
        {
            "project_id": project["id"],
            "customer": MARTY,
            "start": soon().isoformat(),
            "end": (soon() + hours(1)).isoformat(),
        },
    )
    assert answer.status == 202, answer.json
    run_dispatcher("email")
    [code] = re.findall(r"\d{6}", django_mail.outbox[0].subject)
    delivery = Delivery.objects.get()
    viewer = enter(tenant, Membership.VIEWER)

    html = viewer.get(page_of(delivery)).content.decode()

    assert section_of(html).startswith("What was sent Subject Your code: […] To marty@example.com")
    assert section_of(html).endswith(
        "The content of this e-mail is secret: only its recipients can read it."
    )
    assert code not in html
    assert viewer.get(page_of(delivery, "html")).content == b""


@pytest.mark.parametrize(
    ("state", "days", "sentence"),
    [
        ("scheduled", 30, "Nothing was sent."),
        (
            "delivered",
            30,
            "The content is no longer stored. It is deleted after 30 days, or when a customer's"
            " data is erased.",
        ),
        ("delivered", 0, "The contents of e-mails are not stored."),
    ],
)
def test_mail_without_a_copy(
    tenant: Tenant, enter: Enter, settings: Any, state: str, days: int, sentence: str
) -> None:
    settings.SENT_EMAIL_RETENTION_DAYS = days
    book(tenant)
    if state == "delivered":
        run_dispatcher("email")
        SentEmail.objects.all().delete()
    delivery = Delivery.objects.get(recipient="customer")
    viewer = enter(tenant, Membership.VIEWER)

    html = viewer.get(page_of(delivery)).content.decode().replace("&#x27;", "'")

    assert section_of(html) == f"What was sent {sentence}"
    assert viewer.get(page_of(delivery, "html")).status_code == 404


def test_mail_of_another_app_is_not_found(tenant: Tenant, enter: Enter) -> None:
    book(tenant)
    run_dispatcher("email")
    stranger = enter(Tenant("other"), Membership.OWNER)

    answers = [
        stranger.get(page_of(delivery, page))
        for delivery in Delivery.objects.all()
        for page in ("change", "html")
    ]

    assert [answer.status_code for answer in answers] == [404] * 4


def test_what_was_mailed_is_three_clicks_from_today(visit: Any, office: Tenant) -> None:
    book(office, what="Check-up")
    run_dispatcher("email")
    opened: Visit = visit(member_of(office, "viewer"), "/admin/")
    person = Person(opened)
    page = opened.page

    person.fill("#find-booking", "Marty")
    person.go(".office-find button")
    person.go("#result_list a[href*='/change/']")
    [link] = page.evaluate(
        "[...document.querySelectorAll('#timeline ~ ol .office-entry')]"
        ".filter((one) => one.textContent.includes('to the customer'))"
        ".map((one) => one.querySelector('a').getAttribute('href'))"
    )
    person.go(f"a[href='{link}']")

    assert person.actions == 4  # the name, and three clicks
    assert "Confirmed: Check-up" in page.texts(f"{SECTION} dd")[0]
    page.wait_for(f"document.querySelector('{SECTION} iframe').contentWindow.length === 0")
