"""Who may come in, and that a member of one app finds no trace of another."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from apps_config.models import Account, AppNotification, Membership, SecurityEvent
from availability.models import Calendar, ProjectNotification, ProjectResource
from bookings.models import Booking
from external_calendars.credentials import store_credentials
from external_calendars.models import Connection, ExternalObject
from external_calendars.providers.base import CalendarAccess
from notifications.mail.suppressions import suppress
from tests.bookings.group_world import make_group, seat_in
from tests.office.conftest import Enter
from tests.world import Tenant

TRACE = "zebra"  # a word that stands in every text of the other app
# Kinds of which this app has no row.
ROWLESS = {
    *("Attempt", "Bulk", "Endpoint", "FailedLogin", "Heartbeat", "IdempotencyRecord"),
    *("Schedule", "TaskRun", "UserSession"),
}
# Pages that belong to no model, with what they are asked: {ada}, {booking} and {account} stand for
# ids of the other app. A new page has to be entered here.
PAGES: dict[str, tuple[str, ...]] = {
    "index": ("/admin/",),
    "login": ("/admin/login/",),
    "logout": ("/admin/logout/",),
    "password_change": ("/admin/password_change/",),
    "password_change_done": ("/admin/password_change/done/",),
    "jsi18n": ("/admin/jsi18n/",),
    "search": (f"/admin/search/?s={TRACE}&extended=1",),
    "app_list": ("/admin/bookings/", "/admin/apps_config/"),
    "autocomplete": (
        "/admin/autocomplete/?app_label=bookings&model_name=booking&field_name=resource",
    ),
    "view_on_site": ("/admin/r/1/{booking}/",),
    "auth_user_password_change": ("/admin/apps_config/account/{account}/password/",),
    "calendar": ("/admin/calendar/?resources={ada}", f"/admin/calendar/?q={TRACE}"),
    "calendar_events": ("/admin/calendar/events?resources={ada}&start=2030-01-01&end=2030-01-08",),
    "calendar_book": ("/admin/calendar/bookings",),
    "calendar_times": (
        "/admin/calendar/free-times?resource_id={ada}&start=2030-01-02",
        "/admin/calendar/free-times",
    ),
    "calendar_move": ("/admin/calendar/bookings/{booking}/move",),
    "why": ("/admin/why/", "/admin/why/?resource={ada}"),
    "why_resource": ("/admin/why/{ada}/?at=2030-01-02T10:00",),
    "json_check": ("/admin/json/check",),
    "rules_picture": ("/admin/rules/picture?resource={ada}", "/admin/rules/picture"),
    "rules_regions": ("/admin/rules/regions?country=DE",),
    "sent_mails": ("/admin/e-mails/",),
    "sent_mail": ("/admin/e-mails/20300101-100000-1.log/",),
    "sent_mail_html": ("/admin/e-mails/20300101-100000-1.log/html",),
    "apps_config_account_link": ("/admin/accounts/{account}/password-link/",),
    "choose_password": ("/admin/password/{account}/set-password/",),
}


@pytest.fixture
def zebra(tenant: Tenant) -> Tenant:
    """An app with a row of every kind that an app can have."""
    other = Tenant(f"{TRACE}-{tenant.app.slug}", name=f"{TRACE} Inc.")
    ada = other.make_resource(f"{TRACE} Ada", email=f"{TRACE}@example.com")
    other.put(f"/resources/{ada['id']}", {"availability_constraints": [{"block_weekends": {}}]})
    reminder = {
        "type": "email",
        "settings": {"recipient": "customer", "subject": TRACE},
        "when": {"type": "before", "unit": "mins", "time": 60},
    }
    project = other.make_project(ada["id"], name=TRACE, event_notifications=[reminder])
    other.put(f"/apps/{other.app.slug}", {"event_notifications": [reminder]})
    other.make_event(
        ada["calendars"][0]["id"], "2030-01-01 10:00:00", "2030-01-01 11:00:00", what=TRACE
    )
    other.post("/webhooks", {"url": f"https://{TRACE}.example.com/in"})
    other.put("/templates/confirmed_customer", {"subject": TRACE})
    customer = {"name": TRACE, "email": f"{TRACE}@example.com"}
    booked = other.book(
        project_id=project["id"],
        resource_id=ada["id"],
        graph="confirm_decline",
        settings={"enforce_availability": False},
        customer=customer,
        what=TRACE,
        start="2030-01-02 10:00:00",
        end="2030-01-02 11:00:00",
    )
    series = other.book(
        resource_id=ada["id"],
        customer=customer,
        what=TRACE,
        start="2030-01-03 10:00:00",
        end="2030-01-03 11:00:00",
        recurrence="FREQ=DAILY;COUNT=2",
    )
    hold = {"start": "2030-01-07 10:00:00", "end": "2030-01-07 11:00:00"}
    held = other.post("/bookings/reserve", {"resource_id": ada["id"], **hold})
    group = make_group(other, ada)
    seat_in(other, group)
    other.put(f"/projects/{project['id']}", {"settings": {"verify_email": True}})
    day = timezone.now().date() + timedelta(days=3)
    day += timedelta(days=2 if day.weekday() > 4 else 0)
    wanted = {"start": f"{day} 10:00:00", "end": f"{day} 11:00:00", "customer": customer}
    waits = other.widget().post("/bookings", {"project_id": project["id"], **wanted})
    assert (booked.status, series.status, held.status, waits.status) == (201, 201, 201, 202)
    suppress(other.app, f"{TRACE}@example.com", "bounced", now=timezone.now(), detail=TRACE)
    other.member(f"{TRACE}-member@example.com")
    invited = other.post(f"/apps/{other.app.slug}/members", {"email": f"{TRACE}-new@example.com"})
    assert invited.status == 201
    connect(other, ada["id"])
    return other


def connect(other: Tenant, resource_id: str) -> None:
    """A calendar that is kept elsewhere, and stopped, with a feed."""
    calendar = Calendar.objects.create(
        app=other.app,
        resource_id=resource_id,
        name=TRACE,
        provider="caldav",
        provider_id=f"https://{TRACE}.example.com/",
        provider_access=Calendar.WRITER,
    )
    row = Connection(calendar=calendar, problem="unauthorized", problem_since=timezone.now())
    store_credentials(row, CalendarAccess(calendar.provider_id, TRACE, TRACE))
    row.unread = 1
    row.save()
    ExternalObject.objects.create(
        connection=row, href=f"/{TRACE}.ics", uid=TRACE, problem=f"{TRACE} can't be read."
    )
    assert other.post(f"/calendars/{calendar.pk}/feed").status == 201


def walk(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every address of the back office: as it is written, and its pattern."""
    for pattern in patterns:
        written = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from walk(pattern.url_patterns, written)
        else:
            yield written, pattern


def addresses() -> dict[str, str]:
    """Name -> how it is written, of everything below /admin/."""
    found = next(
        pattern
        for pattern in get_resolver().url_patterns
        if getattr(pattern, "app_name", "") == "admin"
    )
    return {one.name: written for written, one in walk(found.url_patterns, "admin/") if one.name}


def model_of(name: str) -> Any:
    """The model that an address belongs to; None for pages of the whole."""
    for model in admin.site._registry:
        if name.startswith(f"{model._meta.app_label}_{model._meta.model_name}_"):
            return model
    return None


def fill(written: str, row: Any) -> str:
    """An address with the id of a row in every place."""
    return "/" + re.sub(r"<[^>]+>|\(\[\^/\]\+\)", str(row.pk), written).replace("^", "").replace(
        "$", ""
    )


def row_of(model: Any, zebra: Tenant) -> Any:
    """A row of the other app, or any row of the platform."""
    paths = admin.site._registry[model].app_paths
    if not paths:
        return model._default_manager.first()
    for path in paths:
        wanted = {"pk" if path == "pk" else path: zebra.app.pk}
        row = model._default_manager.filter(**wanted).first()
        if row is not None:
            return row
    return None


ROOMS = ("apps_config", "availability", "bookings", "external_calendars", "notifications")


# An owner sees all pages. Lists alone search: the deep run searches every page, in every role.
LISTS, EVERY_PAGE = "_changelist", ""
ROLES = [
    (Membership.OWNER, LISTS),
    *(
        pytest.param(role, EVERY_PAGE, marks=pytest.mark.deep)
        for role in (Membership.VIEWER, Membership.OWNER, Membership.EDITOR)
    ),
]


def snapshot() -> dict[str, list[Any]]:
    """Everything that an app may own, and the platform's rows, as they stand; without the record of
    what the account does to its own app."""
    return {
        model._meta.label: list(model._default_manager.order_by("pk").values())
        for label in ROOMS
        for model in apps.get_app_config(label).get_models()
        if model is not SecurityEvent
    }


@pytest.mark.parametrize(("role", "searched"), ROLES)
def test_a_member_of_another_app_finds_no_trace(
    tenant: Tenant, zebra: Tenant, enter: Enter, role: str, searched: str
) -> None:
    client = enter(tenant, role)
    before = snapshot()
    seen, rowless, unknown = {}, set(), set()

    # The way out comes last.
    for name, written in sorted(addresses().items(), key=lambda address: address[0] == "logout"):
        model = model_of(name)
        if model is None:
            unknown |= {name} - PAGES.keys()
            seen[name] = ask_page(client, name, zebra)
            continue
        row = row_of(model, zebra)
        if row is None:
            rowless.add(model.__name__)
            continue
        address = fill(written, row)
        form = {"action": "cancel", "_selected_action": [str(row.pk)]}
        if not name.endswith("_add"):  # a name is enough for a row in the member's own app
            form["name"] = "taken over"
        seen[name] = [
            (address, client.get(address)),
            (address, client.post(address, form)),
        ]
        if name.endswith(searched):
            seen[name].append((address, client.get(address, {"q": TRACE})))

    assert (unknown, PAGES.keys() - seen.keys()) == (set(), set())
    assert len(seen) > 130
    assert rowless == ROWLESS
    traces = [
        (name, address, answer.status_code)
        for name, answers in seen.items()
        for address, answer in answers
        if TRACE in text_of(answer).replace(address, "")
    ]
    assert traces == []
    failures = [
        (name, answer.status_code)
        for name, answers in seen.items()
        for _, answer in answers
        if answer.status_code >= 500
    ]
    assert failures == []
    assert snapshot() == before


def ask_page(client: Client, name: str, zebra: Tenant) -> list[tuple[str, Any]]:
    """A page that belongs to no model, looked at and sent to, as JSON too."""
    ada = zebra.app.resources.get()
    ids = {
        "ada": str(ada.pk),
        "booking": str(zebra.app.bookings.first().pk),
        "account": str(zebra.app.memberships.first().account_id),
    }
    times = {"start": "2030-02-01T10:00", "end": "2030-02-01T11:00"}
    body = times | {
        "resource_id": ids["ada"],
        "resource": ids["ada"],
        "what": "Meeting",
        "customer": {"name": "Marty", "email": "marty@example.com"},
        "constraints": [],
        "rules": [],
    }
    answers = []
    for address in (page.format(**ids) for page in PAGES.get(name, ())):
        answers += [
            (address, client.get(address)),
            (address, client.post(address, body, content_type="application/json")),
        ]
        if name != "logout":
            form = {"new_password1": PASSWORD, "new_password2": PASSWORD}
            answers.append((address, client.post(address, form)))
    return answers


def text_of(answer: Any) -> str:
    """The page without what the request itself said."""
    said = answer.content.decode() + answer.headers.get("Location", "")
    return (
        said.replace(f"q={TRACE}", "").replace(f"q%3D{TRACE}", "").replace(f'value="{TRACE}"', "")
    )


def test_choices_are_scoped(tenant: Tenant, zebra: Tenant, enter: Enter) -> None:
    """Autocompletes, lists to choose from and the names in filters."""
    tenant.make_resource("Own")
    client = enter(tenant)
    fields = [
        (model, field)
        for model, page in admin.site._registry.items()
        for field in page.autocomplete_fields
    ]

    answers = [
        client.get(
            reverse("admin:autocomplete"),
            {
                "app_label": model._meta.app_label,
                "model_name": model._meta.model_name,
                "field_name": field,
                "term": term,
            },
        )
        for model, field in fields
        for term in (TRACE, "")
    ]
    ada = zebra.app.resources.get()
    project = zebra.app.projects.get()
    filtered = client.get(
        reverse("admin:bookings_booking_changelist"),
        {
            "resource__id__exact": ada.pk,
            "project__id__exact": project.pk,
            "app__id__exact": zebra.app.pk,
        },
    )

    assert len(fields) > 3
    assert [answer for answer in answers if TRACE in answer.content.decode()] == []
    assert TRACE not in filtered.content.decode()
    assert list(filtered.context["cl"].result_list) == []


@pytest.mark.parametrize("who", ["owner", "superuser"])
def test_rows_of_another_page_are_edited_there_alone(
    tenant: Tenant, zebra: Tenant, enter: Enter, who: str
) -> None:
    """Their own pages would save them past the services."""
    client = enter(zebra, Membership.OWNER) if who == "owner" else enter()
    rows = {
        "availability_projectresource": ProjectResource.objects.get(),
        "availability_projectnotification": ProjectNotification.objects.get(),
        "apps_config_appnotification": AppNotification.objects.get(),
    }
    before = snapshot()

    answers = {}
    for name, row in rows.items():
        page = reverse(f"admin:{name}_change", args=[row.pk])
        answers[name] = [
            client.get(page).status_code,
            client.post(page, {"position": "7", "when_time": "7"}).status_code,
            client.get(reverse(f"admin:{name}_add")).status_code,
            client.post(reverse(f"admin:{name}_delete", args=[row.pk]), {"post": "y"}).status_code,
        ]

    assert answers == {name: [200, 403, 403, 403] for name in rows}
    assert snapshot() == before


def test_export_and_actions_of_foreign_bookings(
    tenant: Tenant, zebra: Tenant, enter: Enter
) -> None:
    client = enter(tenant)
    before = snapshot()

    rows = client.get(reverse("admin:bookings_booking_export_rows")).json()
    ids = [str(booking.id) for booking in Booking.objects.filter(app=zebra.app)]
    client.post(
        reverse("admin:bookings_booking_changelist"),
        {
            "action": "apply_cancel",
            "_selected_action": ids,
            "select_across": "1",
            "confirmed": "yes",
        },
    )

    assert (rows["count"], TRACE in rows["csv"]) == (0, False)
    assert snapshot() == before


# --- coming in ------------------------------------------------------------------------------------
PASSWORD = "correct horse battery"


def log_in(email: str, password: str = PASSWORD) -> Any:
    form = {"username": email, "password": password, "next": "/admin/"}
    return Client().post(reverse("admin:login"), form)


def test_members_and_staff_log_in_and_nobody_else(tenant: Tenant) -> None:
    for email in ("member@example.com", "stranger@example.com", "former@example.com"):
        Account.objects.create_user(email, PASSWORD)
    Account.objects.create_superuser("staff@example.com", PASSWORD)
    member = Account.objects.get(email="member@example.com")
    Membership.objects.create(account=member, app=tenant.app, role=Membership.VIEWER)
    archived = Tenant("archived")
    former = Account.objects.get(email="former@example.com")
    Membership.objects.create(account=former, app=archived.app, role=Membership.OWNER)
    archived.call("DELETE", f"/apps/{archived.app.slug}")

    answers = {
        email: log_in(email).status_code
        for email in (
            "member@example.com",
            "staff@example.com",
            "stranger@example.com",
            "former@example.com",
        )
    }

    assert answers == {
        "member@example.com": 302,
        "staff@example.com": 302,
        "stranger@example.com": 200,
        "former@example.com": 200,
    }


def test_a_membership_that_ends_closes_the_door(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)
    inside = client.get("/admin/")

    Membership.objects.all().delete()
    outside = client.get("/admin/")

    assert (inside.status_code, outside.status_code) == (200, 302)


def test_pages_carry_their_policy(tenant: Tenant, enter: Enter) -> None:
    page = enter(tenant).get("/admin/")

    policy = page.headers["Content-Security-Policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self' 'unsafe-eval'" in policy
    assert "no-store" in page.headers["Cache-Control"]
    inline = re.findall(r"<script(?![^>]*\ssrc=)([^>]*)>\s*\S", page.content.decode())
    assert inline == [' id="office-words" type="application/json"']  # data, which runs nothing
