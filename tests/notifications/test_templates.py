"""/templates: an app's own words for its mails."""

import re
from typing import Any

import pytest

from notifications.mail import PLACEHOLDERS, SLUGS
from notifications.models import EmailTemplate
from tests.bookings.booking_drafts import NINE
from tests.world import STAMP, Caller, Tenant

pytestmark = pytest.mark.usefixtures("clock")

PATH = "/templates/confirmed_customer"
# One for each line of the contract's table and each recipient (section 8).
KINDS = (
    *("tentative_owner", "tentative_customer", "confirmed_owner", "confirmed_customer"),
    *("declined_customer", "cancelled_owner", "cancelled_customer", "unpaid_customer"),
    *("cancelled_by_customer_owner", "cancelled_by_customer_customer"),
    *("rescheduled_owner", "rescheduled_customer", "reminder_owner", "reminder_customer"),
    *("reassigned_owner", "reassigned_customer", "unassigned_owner"),
    *("updated_owner", "updated_customer", "new_times_customer", "message_customer"),
    *("conference_owner", "conference_customer"),
)
WORDS = {
    "subject": "See you on {{ date }}",
    "text": "Hi {{ name }}\n",
    "html": "<p>Hi {{name}}</p>",
}
CUSTOM = {"slug": "confirmed_customer", **WORDS, "custom": True, "updated_at": STAMP}


def stored_templates() -> list[dict[str, Any]]:
    return list(EmailTemplate.objects.values("slug", "subject", "text", "html"))


# --- Reading --------------------------------------------------------------------------------------
def test_list_has_every_kind_with_default_texts(tenant: Tenant) -> None:
    answer = tenant.get("/templates")

    assert (answer.status, list(answer.json)) == (200, ["data"])
    assert sorted(each_record["slug"] for each_record in answer.data) == sorted(KINDS)
    assert [each_record["slug"] for each_record in answer.data] == list(SLUGS)
    for record in answer.data:
        assert set(record) == {"slug", "subject", "text", "html", "custom", "updated_at"}
    for record in answer.data:
        assert (record["custom"], record["updated_at"]) == (False, None)
        assert set(re.findall(r"\{\{ (\w+) \}\}", record["html"])) <= PLACEHOLDERS.keys()
        assert record["html"].startswith("<!DOCTYPE html>")
        assert record["html"].endswith("</html>\n")
    assert answer.data[2]["subject"] == "Confirmed: {{ what }}, {{ short_when }}"
    assert answer.data[2]["text"] == (
        "Your booking is confirmed\n\nHello {{ name }},\n\n"
        "We look forward to seeing you. An invitation for your calendar is attached.\n\n"
        "{{ message }}\n\n{{ details }}\n\n{{ actions }}\n\n{{ links }}\n\n{{ app }}\n\n"
        "{{ footer }}\n"
    )


def test_record_equals_the_list_entry(tenant: Tenant) -> None:
    assert tenant.get(PATH).json == {"data": tenant.get("/templates").data[2]}


def test_query_count_is_constant_with_custom_templates(
    tenant: Tenant, django_assert_max_num_queries: Any
) -> None:
    for slug in SLUGS:
        tenant.put(f"/templates/{slug}", WORDS)

    with django_assert_max_num_queries(2):
        answer = tenant.get("/templates")

    assert [record["custom"] for record in answer.data] == [True] * len(SLUGS)


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("PUT", ""), ("POST", "/preview")])
def test_unknown_kind_is_not_found(tenant: Tenant, method: str, path: str) -> None:
    answer = tenant.call(method, f"/templates/nothing{path}", None if method == "GET" else {})

    assert (answer.status, answer.error) == (
        404,
        {"error": "Template not found.", "code": "not_found", "model": "Template"},
    )


# --- Writing --------------------------------------------------------------------------------------
def test_template_is_scoped_to_the_app(tenant: Tenant, make_tenant: Any) -> None:
    other = make_tenant()

    answer = tenant.put(PATH, WORDS)

    assert (answer.status, answer.json) == (200, {"data": CUSTOM})
    assert tenant.get(PATH).json == {"data": CUSTOM}
    assert tenant.get("/templates/confirmed_owner").data["custom"] is False
    assert other.get(PATH).data["custom"] is False


def test_template_parts_are_updated_separately(tenant: Tenant, clock: Any) -> None:
    default = tenant.get(PATH).data

    first = tenant.put(PATH, {"subject": "One"}).data
    clock.shift(60)
    second = tenant.put(PATH, {"text": "Two"}).data
    third = tenant.put(PATH, {}).data

    assert first == {**default, "subject": "One", "custom": True, "updated_at": STAMP}
    assert second == {**first, "text": "Two", "updated_at": "2026-11-20T09:31:00+0000"}
    assert third == second
    assert stored_templates() == [
        {"slug": "confirmed_customer", "subject": "One", "text": "Two", "html": ""}
    ]


def test_empty_update_stores_nothing(tenant: Tenant) -> None:
    answer = tenant.put(PATH, {})

    assert (answer.data["custom"], stored_templates()) == (False, [])


def test_null_for_all_parts_restores_the_default(tenant: Tenant) -> None:
    default = tenant.get(PATH).data
    tenant.put(PATH, WORDS)

    answers = [tenant.put(PATH, dict.fromkeys(WORDS)) for _ in range(2)]

    assert [answer.data for answer in answers] == [default] * 2
    assert stored_templates() == []


RESETS = "To reset the template, send null for all three parts."
ONE_LINE = "May not contain control characters or line breaks."


@pytest.mark.parametrize("path", [PATH, f"{PATH}/preview"])
@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({"subject": "Hi {{ nmae }}"}, {"subject": ["{{ nmae }} is not a placeholder."]}),
        (
            {"text": "{{ a }}{{b}}{{ what }}", "html": "{{ _c1 }}"},
            {
                "text": ["{{ a }} is not a placeholder.", "{{ b }} is not a placeholder."],
                "html": ["{{ _c1 }} is not a placeholder."],
            },
        ),
        (
            {"subject": "{{ details }}"},
            {"subject": ["{{ details }} can't be used in a subject."]},
        ),
        ({"subject": "a\r\nBcc: x@evil.example"}, {"subject": [ONE_LINE]}),
        ({"subject": "a\u2028b"}, {"subject": [ONE_LINE]}),
        ({"subject": "a\x85b"}, {"subject": [ONE_LINE]}),
        ({"text": "a\x01b"}, {"text": ["May not contain control characters."]}),
        ({"subject": ""}, {"subject": ["This field may not be blank."]}),
        ({"subject": "   "}, {"subject": ["May not be blank."]}),
        ({"html": ""}, {"html": ["This field may not be blank."]}),
        (
            {"subject": "x" * 201},
            {"subject": ["Ensure this field has no more than 200 characters."]},
        ),
        (
            {"text": "x" * 20_001, "html": "x" * 100_001},
            {
                "text": ["Ensure this field has no more than 20000 characters."],
                "html": ["Ensure this field has no more than 100000 characters."],
            },
        ),
        ({"text": 1}, {"text": ["Must be a string."]}),
        ([1], {"body": ["Must be an object."]}),
    ],
)
def test_unusable_templates_are_refused(
    tenant: Tenant, path: str, body: Any, errors: dict[str, list[str]]
) -> None:
    answer = tenant.call("POST" if path.endswith("preview") else "PUT", path, body)

    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert stored_templates() == []


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({"subject": None}, {"subject": [RESETS]}),
        ({"subject": None, "text": None}, {"subject": [RESETS], "text": [RESETS]}),
        ({"subject": None, "text": None, "html": "x"}, {"subject": [RESETS], "text": [RESETS]}),
    ],
)
def test_null_for_one_part_is_refused(tenant: Tenant, body: Any, errors: Any) -> None:
    tenant.put(PATH, WORDS)

    answer = tenant.put(PATH, body)

    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert tenant.get(PATH).data == CUSTOM


def test_other_braces_are_text(tenant: Tenant) -> None:
    words = {"text": "{% if a %} {{ a.b }} {{ a|b }} { } {{}} {{ 1 }} }}{{"}

    assert tenant.put(PATH, words).data["text"] == words["text"]
    assert tenant.post(f"{PATH}/preview").data["text"] == words["text"] + "\n"


def test_lengths_up_to_the_limit_are_kept(tenant: Tenant) -> None:
    words = {"subject": "x" * 200, "text": "y" * 20_000, "html": "z" * 100_000}

    assert tenant.put(PATH, words).data == CUSTOM | words


# --- Rights ---------------------------------------------------------------------------------------
def test_permissions_of_each_role(tenant: Tenant) -> None:
    resource = tenant.make_resource("Ada", email="ada@example.com")
    callers = {
        "server": tenant,
        "owner": tenant.member("owner@example.com"),
        "editor": tenant.member("editor@example.com", "editor"),
        "viewer": tenant.member("viewer@example.com", "viewer"),
        "resource": Caller(resource["api_token"], user="ada@example.com"),
        "widget": tenant.widget(),
        "nobody": Caller("live_api_key_nothing"),
    }
    calls = [("GET", "/templates"), ("GET", PATH), ("PUT", PATH), ("POST", f"{PATH}/preview")]

    statuses = {
        name: [
            caller.call(method, path, None if method == "GET" else {}).status
            for method, path in calls
        ]
        for name, caller in callers.items()
    }

    assert statuses == {
        "server": [200, 200, 200, 200],
        "owner": [200, 200, 200, 200],
        "editor": [200, 200, 200, 200],
        "viewer": [200, 200, 403, 200],
        "resource": [403, 403, 403, 403],
        "widget": [403, 403, 403, 403],
        "nobody": [401, 401, 401, 401],
    }


# --- Previews -------------------------------------------------------------------------------------
def test_preview_of_an_example_booking(tenant: Tenant) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": "Europe/Berlin"}})

    answer = tenant.post("/templates/tentative_owner/preview")

    when = "Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)"
    link = "http://127.0.0.1:8000/v2/bookings/0193a4c2-0000-7000-8000-000000000030/external_action"
    assert (answer.status, set(answer.data)) == (200, {"subject", "text", "html"})
    assert answer.data["subject"] == "Request: Marty McFly, Mon 23 Nov, 09:00"
    assert answer.data["text"] == (
        "New booking request\n\nHello,\n\n"
        "Marty McFly requested this time. Confirm to accept.\n\n"
        "> Thank you for your patience.\n\n"
        "What:      Check-up\n"
        f"When:      {when}\n"
        "Where:     Harbour Street 5\n"
        "Resource:  Ada Lovelace\n"
        "Customer:  Marty McFly\n"
        "           marty@example.com\n"
        "           +1 555 0100\n"
        "Details:   Please come ten minutes early.\n\n"
        f"Confirm:\n{link}/confirm?signature=preview\n\n"
        f"Decline:\n{link}/decline?signature=preview\n\n"
        "Open the booking: http://127.0.0.1:8000/admin/bookings/booking/"
        "0193a4c2-0000-7000-8000-000000000030/change/\n\n"
        f"{tenant.app.name}\n"
    )
    assert f'href="{link}/confirm?signature=preview"' in answer.data["html"]


@pytest.mark.parametrize("slug", SLUGS)
def test_preview_of_every_kind(tenant: Tenant, slug: str) -> None:
    answer = tenant.post(f"/templates/{slug}/preview", {"subject": "{{ what }}: {{ name }}"})

    name = "Marty McFly" if slug.endswith("_customer") else "Ada Lovelace"
    assert answer.data["subject"] == f"Check-up: {name}"
    assert ("Old time:" in answer.data["text"]) is slug.startswith("rescheduled")
    assert "{{" not in answer.data["html"]


def test_preview_of_unsaved_texts(tenant: Tenant) -> None:
    resource = tenant.make_resource("<Ada>", timezone="Europe/Berlin")
    booking = tenant.book(resource_id=resource["id"], **NINE).data
    tenant.put(PATH, WORDS)
    body = {"booking_id": booking["id"], "html": "<b>{{ resource }}</b>", "text": None}

    answer = tenant.post(f"{PATH}/preview", body)

    assert answer.json == {
        "data": {
            "subject": "See you on Monday, 23 November 2026",
            "text": "Hi Marty McFly\n",
            "html": "<b>&lt;Ada&gt;</b>",
        }
    }
    assert tenant.get(PATH).data == CUSTOM


def test_preview_links_are_inactive(tenant: Tenant) -> None:
    """Who may look at templates may not therefore act for the customer."""
    booking = tenant.book(resource_id=tenant.make_resource()["id"], **NINE).data
    viewer = tenant.member("viewer@example.com", "viewer")

    shown = viewer.post(f"{PATH}/preview", {"booking_id": booking["id"]}).data["text"]
    cancel, file = re.findall(r"http://127.0.0.1:8000(/\S+)", shown)

    assert (cancel, file) == (
        f"/v2/bookings/{booking['id']}/external_action/cancel_by_customer?signature=preview",
        f"/book/bookings/{booking['id']}/calendar.ics?signature=preview",
    )
    assert tenant.client.post(cancel).status_code == 403
    assert tenant.client.get(file).status_code == 403


def test_preview_of_a_foreign_booking_is_refused(tenant: Tenant, make_tenant: Any) -> None:
    other = make_tenant()
    booking = other.book(resource_id=other.make_resource()["id"], **NINE).data

    answers = [
        tenant.post(f"{PATH}/preview", {"booking_id": one})
        for one in (booking["id"], "0193a4c2-0000-7000-8000-000000000000", "x")
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"booking_id": ["There is no such booking."]}),
        (422, {"booking_id": ["There is no such booking."]}),
        (422, {"booking_id": ["Must be a UUID."]}),
    ]
