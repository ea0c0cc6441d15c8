"""Who may come in, and that a member of one app finds no trace of another: every page of the back
office, asked by everybody who may not see the app.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone
from unfold.decorators import action

from apps_config.models import Account, AppNotification, Membership, SavedFilter, SecurityEvent
from availability.models import Calendar, ProjectNotification, ProjectResource
from bookings.models import Booking
from external_calendars.credentials import store_credentials
from external_calendars.models import Connection, ExternalObject
from external_calendars.providers.base import CalendarAccess
from notifications.mail.suppressions import suppress
from office.base.list_filters import ScopedChoiceFilter
from office.base.model_admin import OfficeAdmin
from office.base.model_admin_pages import ExtraPage
from office.base.row_choices import CURRENT, OFFER, VISIBLE
from office.urls import OfficePage
from tests.bookings.group_world import make_group, seat_in
from tests.office.conftest import Enter, logged_in
from tests.world import Tenant

TRACE = "zebra"  # a word that stands in every text of the other app
# Kinds of which this app has no row.
ROWLESS = {"UserSession"}


def fields_with_choices(page: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The foreign keys of a page's form and filters whose rows are queried as one types, with what
    else such a query says."""
    for field in page.autocomplete_fields:
        yield field, ("",)
    for given in page.list_filter:
        if isinstance(given, tuple) and issubclass(given[1], ScopedChoiceFilter):
            yield given[0], (f"&{OFFER}={VISIBLE}", f"&{OFFER}={CURRENT}")


# Pages that belong to no model, with what they are asked: {ada}, {booking}, {account},
# {invitation}, {app} and {project} are ids of the other app. A new page with more than its own
# address has to be entered here.
PAGES: dict[str, tuple[str, ...]] = {
    "search": (f"/admin/search/?s={TRACE}&extended=1",),
    "app_list": ("/admin/bookings/", "/admin/apps_config/"),
    "autocomplete": tuple(
        f"/admin/autocomplete/?app_label={model._meta.app_label}"
        f"&model_name={model._meta.model_name}&field_name={field}&term={term}{offer}"
        for model, page in admin.site._registry.items()
        for field, offers in fields_with_choices(page)
        for offer in offers
        for term in (TRACE, "")
    ),
    "view_on_site": ("/admin/r/1/{booking}/",),
    "auth_user_password_change": ("/admin/apps_config/account/{account}/password/",),
    "calendar": ("/admin/calendar/?resources={ada}", f"/admin/calendar/?q={TRACE}"),
    "calendar_events": ("/admin/calendar/events?resources={ada}&start=2030-01-01&end=2030-01-08",),
    "calendar_times": (
        "/admin/calendar/free-times?resource_id={ada}&start=2030-01-02",
        "/admin/calendar/free-times",
    ),
    "calendar_customers": (f"/admin/calendar/customers?resource_id={{ada}}&q={TRACE}",),
    "calendar_questions": ("/admin/calendar/questions?resource_id={ada}",),
    "calendar_move": ("/admin/calendar/bookings/{booking}/move",),
    "offline_today": ("/admin/offline/today?app={app}",),
    "why": ("/admin/why/", "/admin/why/?resource={ada}"),
    "why_resource": ("/admin/why/{ada}/?at=2030-01-02T10:00",),
    "first_steps_end": ("/admin/first-steps/{app}/end",),
    "project_share": ("/admin/projects/{project}/share/",),
    "project_qr": ("/admin/projects/{project}/qr.svg",),
    "project_poster": ("/admin/projects/{project}/poster",),
    "rules_picture": ("/admin/rules/picture?resource={ada}", "/admin/rules/picture"),
    "reports": ("/admin/reports/?by=resource",),
    "report_file": ("/admin/reports/utilisation.csv",),
    "rules_regions": ("/admin/rules/regions?country=DE",),
    "sent_mail": ("/admin/e-mails/20300101-100000-1.log/",),
    "sent_mail_html": ("/admin/e-mails/20300101-100000-1.log/html",),
    "choose_password": ("/admin/password/{account}/set-password/",),
    "invitation": ("/admin/invitations/{invitation}/",),
    "mfa_remove_webauthn": ("/admin/account/security/webauthn/keys/1/remove/",),
    "mfa_edit_webauthn": ("/admin/account/security/webauthn/keys/1/edit/",),
}
# What devices get to install the office: nothing of an account.
FOR_DEVICES = {"manifest", "offline", "offline_worker"}
# Pages that show or change the account alone, or what everybody may read.
OWN_PAGES = {
    *("index", "search", "jsi18n", "login", "account_logout", "account_reauthenticate"),
    *("password_change", "password_change_done", "choose_password", "account_sessions"),
    *("mfa_index", "mfa_list_webauthn", "mfa_login_webauthn"),
    *FOR_DEVICES,
}
PUBLIC_PAGES = {"login", "account_logout", "choose_password", *FOR_DEVICES}


@pytest.fixture
def foreign_tenant(tenant: Tenant) -> Tenant:
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
    other.put("/calendars/clients/google", {"client_id": TRACE, "client_secret": TRACE})
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
    SavedFilter.objects.create(
        app=other.app, account=other.app.memberships.get().account, name=TRACE, query=f"q={TRACE}"
    )
    assert other.post("/schedules", {"name": TRACE}).status == 201
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
    """Name -> how it is written, of everything below /admin/; the ways out come last."""
    written = {
        one.name: address
        for address, one in walk(get_resolver().url_patterns)
        if address.startswith("admin/") and one.name
    }
    return dict(sorted(written.items(), key=lambda address: address[0] in WAYS_OUT))


WAYS_OUT = {"logout", "account_logout"}


def model_of(name: str) -> Any:
    """The model that an address belongs to; None for pages of the whole."""
    for model in admin.site._registry:
        if name.startswith(f"{model._meta.app_label}_{model._meta.model_name}_"):
            return model
    return None


def fill(written: str, row: Any, foreign_tenant: Tenant) -> str:
    """An address with the id of a row in every place, or what else it asks for."""
    others = {"app_id": foreign_tenant.app.pk, "slug": "confirmed_customer"}
    others["filter_id"] = SavedFilter.objects.get(app=foreign_tenant.app).pk

    def value(place: re.Match[str]) -> str:
        return str(others.get(place[1] or "", row.pk))

    address = re.sub(r"<(?:\w+:)?(\w+)>|\(\[\^/\]\+\)", value, written)
    return "/" + address.replace("^", "").replace("$", "")


def row_of(model: Any, foreign_tenant: Tenant) -> Any:
    """A row of the other app, or any row of the platform."""
    paths = admin.site._registry[model].app_paths
    if not paths:
        return model._default_manager.first()
    for path in paths:
        wanted = {"pk" if path == "pk" else path: foreign_tenant.app.pk}
        row = model._default_manager.filter(**wanted).first()
        if row is not None:
            return row
    return None


ROOMS = ("apps_config", "availability", "bookings", "external_calendars", "notifications")


def snapshot() -> dict[str, list[Any]]:
    """Everything that an app may own, and the platform's rows, as they stand; without the record of
    what the account does to its own app."""
    return {
        model._meta.label: list(model._default_manager.order_by("pk").values())
        for label in ROOMS
        for model in apps.get_app_config(label).get_models()
        if model is not SecurityEvent
    }


ANONYMOUS, STAFF = "anonymous", "staff without rights"
OWNER = Membership.OWNER  # sees all pages of an app
# The ordinary run asks as those with the most pages and with the fewest rights.
ASKING = [
    *(OWNER, STAFF),
    *(pytest.param(who, marks=pytest.mark.deep) for who in ("editor", "viewer", ANONYMOUS)),
]


@pytest.mark.parametrize("who", ASKING)
def test_pages_neither_show_nor_change_rows_of_other_apps(
    tenant: Tenant, foreign_tenant: Tenant, enter: Enter, who: str
) -> None:
    client = client_of(who, tenant, enter)
    before = snapshot()

    asked = {
        name: ask(client, name, written, foreign_tenant) for name, written in addresses().items()
    }

    rowless = {model_of(name).__name__ for name, answers in asked.items() if not answers}
    assert (rowless, PAGES.keys() - asked.keys()) == (ROWLESS, set())
    assert len(asked) > 180
    found = [
        (name, method, address, answer.status_code)
        for name, answers in asked.items()
        for method, address, answer in answers
        if TRACE in text_of(answer).replace(address, "") or answer.status_code >= 500
    ]
    assert found == []
    assert snapshot() == before
    if who in OPEN_TO:
        opened = {name for name, answers in asked.items() for *_, one in answers if is_open(one)}
        assert opened == OPEN_TO[who]


OPEN_TO = {STAFF: OWN_PAGES, ANONYMOUS: PUBLIC_PAGES}


def client_of(who: str, tenant: Tenant, enter: Enter) -> Client:
    if who == ANONYMOUS:
        return Client()
    if who == STAFF:
        return logged_in(Account.objects.create_user("clerk@example.com", "x" * 12, is_staff=True))
    return enter(tenant, who)


def is_open(answer: Any) -> bool:
    return answer.status_code == 200


Asked = list[tuple[str, str, Any]]  # method, address, answer


def ask(client: Client, name: str, written: str, foreign_tenant: Tenant) -> Asked:
    """Ask for a page with ids of the other app, and send to it; nothing without such a row."""
    model = model_of(name)
    if model is None:
        return ask_page(client, name, written, foreign_tenant)
    row = row_of(model, foreign_tenant)
    if row is None:
        return []
    address = fill(written, row, foreign_tenant)
    form = {"action": "cancel", "message": TRACE, "email": "new@example.com", "invite": "1"}
    if not name.endswith("_add"):  # a name is enough for a row in the member's own app
        form["name"] = "taken over"
    answers = [
        ("GET", address, client.get(address)),
        ("POST", address, client.post(address, form)),
        ("POST", address, client.post(address, form | {"confirmed": "yes", "post": "yes"})),
    ]
    if name.endswith("_changelist"):
        answers += ask_list(client, model, row, address, foreign_tenant)
    return answers


def ask_list(client: Client, model: Any, row: Any, address: str, foreign_tenant: Tenant) -> Asked:
    """Search a list, use all its filters and all its actions."""
    page = admin.site._registry[model]
    queries = [{"q": TRACE}, *({name: pk} for name, pk in filters_of(page, foreign_tenant))]
    forms = [
        {
            "action": page.get_action(action)[1],
            "_selected_action": [str(row.pk)],
            "select_across": "1",
            "confirmed": "yes",
        }
        for action in page.actions or ()
    ]
    return [
        *(
            ("GET", f"{address}?{urlencode(query)}", client.get(address, query))
            for query in queries
        ),
        *(("POST", address, client.post(address, form)) for form in forms),
    ]


def filters_of(page: Any, foreign_tenant: Tenant) -> Iterator[tuple[str, str]]:
    """The parameters of a list's filters by rows, with the id of the other app's."""
    for given in page.list_filter:
        field = given if isinstance(given, str) else given[0] if isinstance(given, tuple) else ""
        related = "__" not in field and field and page.model._meta.get_field(field).related_model
        if related and (row := row_of(related, foreign_tenant)):
            yield f"{field}__id__exact", str(row.pk)
        elif getattr(given, "model", None) and (row := row_of(given.model, foreign_tenant)):
            yield given.parameter_name, str(row.pk)


def ask_page(client: Client, name: str, written: str, foreign_tenant: Tenant) -> Asked:
    """A page that belongs to no model, looked at and sent to, as JSON too."""
    ids = {
        "ada": str(foreign_tenant.app.resources.get().pk),
        "booking": str(foreign_tenant.app.bookings.first().pk),
        "account": str(foreign_tenant.app.memberships.first().account_id),
        "invitation": str(foreign_tenant.app.invitations.get().pk),
        "app": str(foreign_tenant.app.pk),
        "project": str(foreign_tenant.app.projects.get().pk),
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
    form = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    answers: Asked = []
    for page in PAGES.get(name) or (f"/{written}",):
        address = page.format(**ids)
        answers += [
            ("GET", address, client.get(address)),
            ("POST", address, client.post(address, body, content_type="application/json")),
        ]
        if name not in WAYS_OUT:
            answers.append(("POST", address, client.post(address, form)))
    return answers


def text_of(answer: Any) -> str:
    """The page without what the request itself said."""
    leads_to = answer.headers.get("Location", "")
    to_log_in = leads_to.startswith("/admin/login/?next=")  # and back
    said = answer.content.decode() + ("" if to_log_in else leads_to)
    asked = (f"q={TRACE}", f"q%3D{TRACE}", f'value="{TRACE}"', f"Search: {TRACE}<span")
    for words in asked:
        said = said.replace(words, "")
    return said


def test_control_members_of_the_app_see_its_rows(foreign_tenant: Tenant, enter: Enter) -> None:
    """The control: what nobody else finds is there."""
    client = enter(foreign_tenant, OWNER)
    names = ("search", "bookings_booking_changelist", "bookings_booking_export_rows", "calendar")
    written = addresses()

    unseen = {
        (method, address)
        for name in (*names, "autocomplete", "bookings_booking_change", "why_resource")
        for method, address, answer in ask(client, name, written[name], foreign_tenant)
        if method == "GET" and TRACE not in text_of(answer).replace(address, "")
    }

    assert unseen == set()


@pytest.mark.parametrize("who", ["owner", "superuser"])
def test_rows_edited_on_another_page_have_no_own_pages(
    tenant: Tenant, foreign_tenant: Tenant, enter: Enter, who: str
) -> None:
    """Their own pages would save them past the services."""
    client = enter(foreign_tenant, Membership.OWNER) if who == "owner" else enter()
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


def test_export_and_actions_of_foreign_bookings_are_refused(
    tenant: Tenant, foreign_tenant: Tenant, enter: Enter
) -> None:
    client = enter(tenant)
    before = snapshot()

    rows = client.get(reverse("admin:bookings_booking_export_rows")).json()
    ids = [str(booking.id) for booking in Booking.objects.filter(app=foreign_tenant.app)]
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


# --- Permissions of pages -------------------------------------------------------------------------
def show(admin_class: Any, request: Any) -> HttpResponse:
    return HttpResponse()


@pytest.mark.parametrize(
    "given",
    [
        {"extra_pages": lambda self: [ExtraPage("page/", show, "page", "")]},
        {"extra_pages": lambda self: [ExtraPage("page/", show, "page", "unknown")]},
        {"actions": [action(show)]},
        {"actions": [action(permissions=["unknown"])(show)]},
        {"actions_list": ["show"], "show": action(show)},
        {"actions_detail": ["show"], "show": action(show)},
    ],
)
def test_page_or_action_without_permission_fails_at_start(given: dict[str, Any]) -> None:
    page = type("Page", (OfficeAdmin,), given)(Booking, admin.site)

    with pytest.raises(ImproperlyConfigured):
        page.get_urls()


@pytest.mark.parametrize("kind", [ExtraPage, OfficePage])
def test_page_needs_its_argument(kind: Any) -> None:
    with pytest.raises(TypeError):
        kind("page/", show, "page")


def test_every_list_checks_its_pages_and_actions() -> None:
    assert [
        page for page in admin.site._registry.values() if not isinstance(page, OfficeAdmin)
    ] == []


# --- coming in ------------------------------------------------------------------------------------
PASSWORD = "correct horse battery"


def log_in(email: str, password: str = PASSWORD) -> Any:
    form = {"username": email, "password": password, "next": "/admin/"}
    return Client().post(reverse("admin:login"), form)


def test_only_members_and_staff_log_in(tenant: Tenant) -> None:
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


def test_removed_membership_ends_access(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)
    inside = client.get("/admin/")

    Membership.objects.all().delete()
    outside = client.get("/admin/")

    assert (inside.status_code, outside.status_code) == (200, 302)


def test_pages_have_a_content_security_policy(tenant: Tenant, enter: Enter) -> None:
    page = enter(tenant).get("/admin/")

    policy = page.headers["Content-Security-Policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self' 'unsafe-eval'" in policy
    assert "no-store" in page.headers["Cache-Control"]
    inline = re.findall(r"<script(?![^>]*\ssrc=)([^>]*)>\s*\S", page.content.decode())
    assert inline == [' id="office-words" type="application/json"']  # data, which runs nothing
