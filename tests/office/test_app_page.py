"""An app's page: settings as fields, checked as the API does, saved beside what clients keep."""

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from apps_config.models import App
from tests.office.staff import faults, form_of, member, messages_of, superuser
from tests.world import Tenant

pytestmark = pytest.mark.django_db

CHOSEN = {
    "from_name": "Harbour Dental",
    "from_email": "desk@harbour.example.com",
    "contact_name": "Ann",
    "contact_email": "ann@harbour.example.com",
    "callback": "https://harbour.example.com/back",
    "redirect_urls": "https://harbour.example.com/a\r\n\r\n  https://harbour.example.com/b  ",
    "default_timezone": "Europe/Berlin",
    "language": "en",
    "stale_calendars": "block",
    "public_challenge": "altcha",
    "blocked_customers": "*@spam.example\r\nann@example.com",
    "public_bookings_per_address_per_hour": "0",
    "public_bookings_per_email_per_day": "5",
}
KEPT = CHOSEN | {
    "blocked_customers": ["*@spam.example", "ann@example.com"],
    "public_bookings_per_address_per_hour": 0,
    "public_bookings_per_email_per_day": 5,
    "redirect_urls": ["https://harbour.example.com/a", "https://harbour.example.com/b"],
    "disable_emails": True,
}


def page_of(app: App) -> str:
    return reverse("admin:apps_config_app_change", args=[app.pk])


def test_settings_are_saved_and_read_through_the_api(tenant: Tenant) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"theme": {"colour": "blue"}}})
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))
    assert form.pop("send_emails") == "on"

    answer = editor.post(page_of(tenant.app), form | CHOSEN | {"name": "Harbour"}, follow=True)

    assert len(messages_of(answer)) == 1
    found = tenant.get("/app").data
    assert (found["name"], found["settings"]) == (
        "Harbour",
        {"theme": {"colour": "blue"}} | KEPT,
    )


def test_concurrent_api_changes_are_kept(tenant: Tenant) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"from_name": "Old", "contact_name": "A"}})
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))
    tenant.put(
        f"/apps/{tenant.app.slug}",
        {"name": "New", "settings": {"from_name": "New", "disable_emails": True, "x": 1}},
    )

    editor.post(page_of(tenant.app), form | {"contact_name": "Bea"})

    found = tenant.get("/app").data
    assert (found["name"], found["settings"]) == (
        "New",
        {"disable_emails": True, "from_name": "New", "contact_name": "Bea", "x": 1},
    )


def test_emptied_field_removes_the_setting(tenant: Tenant) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": KEPT})
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))

    editor.post(page_of(tenant.app), form | dict.fromkeys(CHOSEN, "") | {"send_emails": "on"})

    assert tenant.get("/app").data["settings"] == {"disable_emails": False}


def test_errors_are_at_their_fields(tenant: Tenant) -> None:
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))
    given = {
        "from_email": "nobody",
        "from_name": "x" * 201,
        "callback": "ftp://example.com",
        "redirect_urls": "https://a.example\nnone",
        "default_timezone": "Mars",
        "stale_calendars": "ignore",
    }

    answer = editor.post(page_of(tenant.app), form | given)

    assert faults(answer) == {
        "from_email": ["Must be an e-mail address."],
        "from_name": ["Ensure this field has no more than 200 characters."],
        "callback": ["Must be an http or https address."],
        "redirect_urls": ["Line 2: Must be an http or https address."],
        "default_timezone": ["Must be a time zone such as Europe/Berlin."],
        "stale_calendars": ["Select a valid choice. ignore is not one of the available choices."],
    }
    assert tenant.get("/app").data["settings"] == {"disable_emails": False}


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("berlin", "Europe/Berlin"),
        ("+5:45", "Asia/Kathmandu"),
        ("UTC+05:45", "Asia/Kathmandu"),
        ("", None),
    ],
)
def test_a_time_zone_is_found_by_city_or_offset(
    tenant: Tenant, typed: str, stored: str | None
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": "Asia/Tokyo"}})
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))

    editor.post(page_of(tenant.app), form | {"default_timezone": typed})

    assert tenant.get("/app").data["settings"].get("default_timezone") == stored


@pytest.mark.usefixtures("clock")
def test_ambiguous_offset_suggests_zones(tenant: Tenant) -> None:
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))

    answer = editor.post(page_of(tenant.app), form | {"default_timezone": "+1"})

    words = (
        "Several time zones have UTC+1, such as Europe/Berlin, Africa/Algiers, Africa/Bangui."
        " Type a city."
    )
    assert faults(answer) == {"default_timezone": [words]}


def test_new_app_is_created_by_the_service(tenant: Tenant) -> None:
    staff = superuser()
    path = reverse("admin:apps_config_app_add")
    form = form_of(staff, path) | {"name": "Spa", "slug": "spa", "mode": "test"}

    staff.post(path, form | {"from_name": "The Spa"})
    bad = staff.post(path, form | {"slug": "No Slug"})

    app = App.objects.get(slug="spa")
    assert (app.name, app.mode, app.settings) == ("Spa", "test", {"from_name": "The Spa"})
    assert faults(bad) == {"slug": ["May have a to z, 0 to 9, hyphens and underscores."]}
    assert app.history.count() == 1


def test_new_app_with_values_of_the_address(tenant: Tenant) -> None:
    staff = superuser()
    path = reverse("admin:apps_config_app_add") + "?name=Spa&slug=spa"

    answer = staff.post(path, form_of(staff, path) | {"mode": "live"})

    assert answer.status_code == 302
    assert App.objects.get(slug="spa").name == "Spa"


def test_viewer_reads_but_cannot_change_settings(tenant: Tenant) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": KEPT})
    viewer = member(tenant.app, "viewer")

    page = viewer.get(page_of(tenant.app)).content.decode()
    answer = viewer.post(page_of(tenant.app), {"name": "Mine", "from_name": "Mine"})

    assert [value in page for value in (KEPT["from_name"], KEPT["callback"])] == [True, True]
    assert "Issue a key" not in page
    assert answer.status_code == 403
    assert tenant.get("/app").data["settings"] == KEPT


def test_page_of_another_app_is_404(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    other = make_tenant()
    owner = member(tenant.app, "owner")

    assert owner.get(page_of(other.app)).status_code == 404


# --- Reminders ------------------------------------------------------------------------------------
def reminder(place: int, **given: Any) -> dict[str, Any]:
    blank = dict.fromkeys(
        ("recipient", "subject", "url", "method", "expected_response_code", "id", "app"), ""
    )
    return {
        f"event_notifications-{place}-{name}": value
        for name, value in (blank | {"position": str(place)} | given).items()
    }


MAIL = {
    "type": "email",
    "when_time": "1",
    "when_unit": "hours",
    "when_type": "before",
    "recipient": "customer",
    "subject": "See you",
}
CALL = {
    "type": "webhook",
    "when_time": "2",
    "when_unit": "days",
    "when_type": "after",
    "url": "https://example.com/hook",
}


def test_reminder_rows_store_fields_of_their_type(tenant: Tenant) -> None:
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))
    rows = reminder(0, **MAIL, position="1", url="https://example.com/not-kept")
    rows |= reminder(1, **CALL, position="0", recipient="owner")

    editor.post(page_of(tenant.app), form | rows | {"event_notifications-TOTAL_FORMS": "2"})

    assert tenant.get("/app").data["event_notifications"] == [
        {
            "type": "webhook",
            "settings": {"url": "https://example.com/hook", "method": "post"},
            "when": {"type": "after", "unit": "days", "time": 2},
        },
        {
            "type": "email",
            "settings": {"recipient": "customer", "subject": "See you"},
            "when": {"type": "before", "unit": "hours", "time": 1},
        },
    ]
    page = editor.get(page_of(tenant.app)).content.decode()
    sentences = [
        "1 hour before the start, e-mail “See you” to the customer",
        "2 days after the start, POST to https://example.com/hook",
    ]
    assert [sentence in page for sentence in sentences] == [True, True]


WRONG_REMINDERS: list[tuple[dict[str, str], str, str | None]] = [
    (MAIL | {"recipient": ""}, "recipient", "This field is required."),
    (CALL | {"url": "http://127.0.0.1/x"}, "url", None),
    (CALL | {"url": ""}, "url", "This field is required."),
    (
        MAIL | {"when_time": "366", "when_unit": "days"},
        "when_time",
        "Must be at most one year.",
    ),
    (
        CALL | {"expected_response_code": "99"},
        "expected_response_code",
        "Ensure this value is greater than or equal to 100.",
    ),
]


def test_errors_of_reminders_are_at_their_fields(tenant: Tenant) -> None:
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))
    form |= {"event_notifications-TOTAL_FORMS": str(len(WRONG_REMINDERS))}
    for number, (given, _, _) in enumerate(WRONG_REMINDERS):
        form |= reminder(number, **given)

    answer = editor.post(page_of(tenant.app), form)

    errors = answer.context["inline_admin_formsets"][0].formset.errors
    found = [{field: list(words) for field, words in row.items()} for row in errors]
    assert found == [
        {field: [words] if words else found[number].get(field)}
        for number, (_, field, words) in enumerate(WRONG_REMINDERS)
    ]
    assert tenant.get("/app").data["event_notifications"] == []


def test_reminder_rows_of_a_project(tenant: Tenant) -> None:
    project = tenant.make_project(
        tenant.make_resource()["id"],
        event_notifications=[
            {
                "type": "email",
                "settings": {"recipient": "owner"},
                "when": {"type": "before", "unit": "mins", "time": 0},
            },
        ],
    )
    staff = superuser()

    page = staff.get(reverse("admin:availability_project_change", args=[project["id"]]))

    assert "at the start, e-mail to the owner" in page.content.decode()


def archive_of(app: App) -> str:
    return reverse("admin:apps_config_app_archive", args=[app.pk])


def test_archive_after_confirmation(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner")

    asked = owner.get(archive_of(tenant.app))
    before = tenant.get("/app").status
    done = owner.post(archive_of(tenant.app))

    tenant.app.refresh_from_db()
    assert "Archive this app?" in asked.content.decode()
    assert (before, tenant.get("/app").status) == (200, 401)
    assert (done.status_code, done["Location"]) == (302, reverse("admin:index"))
    assert tenant.app.archived_at is not None
    # Nobody's any more but the platform's staff, who find nothing left to archive.
    staff = superuser()
    assert owner.get(page_of(tenant.app)).status_code == 302
    assert "Archive…" not in staff.get(page_of(tenant.app)).content.decode()
    assert staff.post(archive_of(tenant.app)).status_code == 403


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_only_owners_archive(tenant: Tenant, role: str) -> None:
    client = member(tenant.app, role)

    answers = [client.get(archive_of(tenant.app)), client.post(archive_of(tenant.app))]

    tenant.app.refresh_from_db()
    assert [answer.status_code for answer in answers] == [403, 403]
    assert tenant.app.archived_at is None
    assert "Archive…" not in client.get(page_of(tenant.app)).content.decode()


# --- Booking on the web ---------------------------------------------------------------------------
def test_switches_of_public_access(tenant: Tenant) -> None:
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))
    is_published = form.pop("publish_projects")

    editor.post(page_of(tenant.app), form | {"public_resources": "on"})

    assert is_published == "on"
    settings = {"publish_projects": False, "public_resources": True}
    assert App.objects.get(id=tenant.app.id).settings == settings
    again = form_of(editor, page_of(tenant.app))
    assert ("publish_projects" in again, again["public_resources"]) == (False, "on")
