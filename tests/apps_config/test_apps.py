"""GET /app; GET, POST /apps; GET, PUT, DELETE /apps/:slug (section 4, App)."""

from collections.abc import Callable
from typing import Any

import pytest

from apps_config.models import Account, App, Membership
from common.shipped_languages import shipped_languages
from tests.world import NOW, STAMP, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

NOT_FOUND = {"error": "App not found.", "code": "not_found", "model": "App"}
REMINDER = {
    "type": "email",
    "settings": {"recipient": "customer", "subject": "See you soon"},
    "when": {"type": "before", "unit": "mins", "time": 60},
}


def record(tenant: Tenant, **given: Any) -> dict[str, Any]:
    """The app as it is written when nothing but `given` was set."""
    return {
        "id": str(tenant.app.id),
        "slug": tenant.app.slug,
        "name": "Harbour",
        "mode": "live",
        "settings": {"disable_emails": False},
        "event_notifications": [],
        "created_at": STAMP,
        "updated_at": STAMP,
        **given,
    }


@pytest.fixture
def tenant(make_tenant: MakeTenant) -> Tenant:
    return make_tenant(slug="harbour", name="Harbour")


# --- GET ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["/app", "/app/", "/apps/harbour", "/apps/harbour/"])
def test_the_app_of_a_key(tenant: Tenant, path: str) -> None:
    answer = tenant.get(path)

    assert (answer.status, answer.json) == (200, {"data": record(tenant)})


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("slug", ["stranger", "unknown"])
def test_foreign_and_unknown_slugs_are_not_found(
    tenant: Tenant, make_tenant: MakeTenant, method: str, slug: str
) -> None:
    make_tenant(slug="stranger")

    answer = tenant.call(method, f"/apps/{slug}", {"name": "Mine"})

    assert (answer.status, answer.error) == (404, NOT_FOUND)
    assert App.objects.get(slug="stranger").name == "Stranger"


def test_a_key_lists_its_app(tenant: Tenant, make_tenant: MakeTenant) -> None:
    make_tenant(slug="stranger")

    answer = tenant.get("/apps?limit=2")

    url = "http://127.0.0.1:8000/v2/apps?limit=2&page=1"
    assert (answer.status, answer.json) == (
        200,
        {
            "total": 1,
            "per_page": "2",
            "current_page": 1,
            "last_page": 1,
            "first_page_url": url,
            "last_page_url": url,
            "next_page_url": None,
            "prev_page_url": None,
            "from": 1,
            "to": 1,
            "data": [record(tenant)],
        },
    )


def test_an_account_lists_its_apps_newest_first(
    tenant: Tenant, make_tenant: MakeTenant, clock: Any
) -> None:
    member = tenant.member("both@example.com")
    account = Account.objects.get(email="both@example.com")
    for slug in ("second", "third", "archived"):
        clock.shift(1)
        other = make_tenant(slug=slug).app
        Membership.objects.create(account=account, app=other, role=Membership.VIEWER)
    App.objects.filter(slug="archived").update(archived_at=NOW)

    answer = member.get("/apps")

    assert answer.json["total"] == 3
    assert [app["slug"] for app in answer.data] == ["third", "second", "harbour"]


# --- POST -----------------------------------------------------------------------------------------
def test_owner_creates_an_app_and_owns_it(tenant: Tenant) -> None:
    owner = tenant.member("owner@example.com")

    answer = owner.post(
        "/apps",
        {
            "slug": "second_app-2",
            "name": "Second",
            "mode": "test",
            "settings": {"disableEmails": True, "language": None, "colour": "red"},
            "event_notifications": [REMINDER],
        },
    )

    made = App.objects.get(slug="second_app-2")
    assert (answer.status, answer.json) == (
        201,
        {
            "data": {
                "id": str(made.id),
                "slug": "second_app-2",
                "name": "Second",
                "mode": "test",
                "settings": {"disable_emails": True, "colour": "red"},
                "event_notifications": [REMINDER],
                "created_at": STAMP,
                "updated_at": STAMP,
            }
        },
    )
    assert list(made.memberships.values_list("account__email", "role")) == [
        ("owner@example.com", "owner")
    ]


@pytest.mark.parametrize("slug", ["harbour", "stranger", "archived"])
def test_taken_slug_is_refused(tenant: Tenant, make_tenant: MakeTenant, slug: str) -> None:
    """Slugs are unique in the whole service, for ever."""
    make_tenant(slug="stranger")
    App.objects.filter(id=make_tenant(slug="archived").app.id).update(archived_at=NOW)

    answer = tenant.member("owner@example.com").post("/apps", {"slug": slug, "name": "A"})

    assert (answer.status, answer.error) == (
        409,
        {"error": "Another app has this slug.", "code": "already_exists"},
    )


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"slug": ["This field is required."], "name": ["This field is required."]}),
        (
            {"slug": "Ä b", "name": ""},
            {
                "slug": ["May have a to z, 0 to 9, hyphens and underscores."],
                "name": ["This field may not be blank."],
            },
        ),
        (
            {"slug": "x" * 101, "name": "x" * 201},
            {
                "slug": ["Ensure this field has no more than 100 characters."],
                "name": ["Ensure this field has no more than 200 characters."],
            },
        ),
        (
            {"slug": "a", "name": "a\nb", "mode": "demo"},
            {
                "name": ["May not contain control characters or line breaks."],
                "mode": ["Must be one of live, test."],
            },
        ),
        ({"slug": 5, "name": "a"}, {"slug": ["Must be a string."]}),
    ],
)
def test_wrong_new_app_is_refused(
    tenant: Tenant, body: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    answer = tenant.member("owner@example.com").post("/apps", body)

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert App.objects.count() == 1


def test_only_owners_create_apps(tenant: Tenant) -> None:
    callers = [
        tenant,
        *(tenant.member(f"{role}@example.com", role) for role in ("viewer", "editor")),
    ]

    answers = [caller.post("/apps", {"slug": "new", "name": "New"}) for caller in callers]

    assert [(answer.status, answer.json["code"], answer.error["error"]) for answer in answers] == [
        (403, "forbidden", "Only accounts may do this: use an access token."),
        (403, "forbidden", "Only owners of an app can create apps."),
        (403, "forbidden", "Only owners of an app can create apps."),
    ]


# --- PUT ------------------------------------------------------------------------------------------
def test_update_is_partial(tenant: Tenant, clock: Any) -> None:
    clock.shift(60)

    answer = tenant.put("/apps/harbour", {"name": "Other"})

    expected = record(tenant, name="Other", updated_at="2026-11-20T09:31:00+0000")
    assert (answer.status, answer.json) == (200, {"data": expected})


@pytest.mark.parametrize("body", [{}, [], {"settings": []}, {"settings": {}}, None])
def test_update_without_fields_changes_nothing(tenant: Tenant, body: Any) -> None:
    answer = tenant.put("/apps/harbour", body)

    assert (answer.status, answer.json) == (200, {"data": record(tenant)})


@pytest.mark.parametrize(
    "key", ["disable_emails", "disableEmails", "disableEmail", "disable_email"]
)
@pytest.mark.parametrize("value", [True, False, None])
def test_the_spellings_of_disable_emails(tenant: Tenant, key: str, value: bool | None) -> None:
    tenant.put("/apps/harbour", {"settings": {"disable_emails": value is not True}})

    answer = tenant.put("/apps/harbour", {"settings": {key: value}})

    assert answer.data["settings"] == {"disable_emails": value is True}
    assert tenant.get("/app").data["settings"] == {"disable_emails": value is True}


def test_settings_are_merged_key_by_key(tenant: Tenant) -> None:
    steps = [
        {"from_name": "Harbour", "theme": {"colour": "red", "logo": "a.png"}, "x": [1]},
        {"contact_name": "Ada", "theme": {"logo": None, "font": "serif"}, "x": [2]},
        {"from_name": None, "x": None, "unknown": None},
    ]

    answers = [tenant.put("/apps/harbour", {"settings": step}) for step in steps]

    off = {"disable_emails": False}
    assert [answer.data["settings"] for answer in answers] == [
        {**off, "from_name": "Harbour", "theme": {"colour": "red", "logo": "a.png"}, "x": [1]},
        {
            **off,
            "from_name": "Harbour",
            "contact_name": "Ada",
            "theme": {"colour": "red", "font": "serif"},
            "x": [2],
        },
        {**off, "contact_name": "Ada", "theme": {"colour": "red", "font": "serif"}},
    ]


def test_every_known_setting(tenant: Tenant) -> None:
    settings = {
        "disable_emails": True,
        "from_name": "Harbour Dental",
        "from_email": "desk@example.com",
        "contact_name": "Ada Berg",
        "contact_email": "ada@example.com",
        "callback": "https://example.com/back",
        "redirect_urls": ["https://example.com/a", "http://localhost:3000/b"],
        "default_timezone": "Europe/Berlin",
        "language": "en",
        "stale_calendars": "block",
        "public_bookings_per_address_per_hour": 1,
        "public_bookings_per_email_per_day": 2,
        "public_open_bookings_per_email": 3,
        "public_bookings_per_app_per_minute": 4,
        "blocked_customers": ["*@spam.example"],
        "public_challenge": "off",
    }

    answer = tenant.put("/apps/harbour", {"settings": settings})

    assert answer.data["settings"] == settings


@pytest.mark.parametrize(
    ("settings", "errors"),
    [
        ("on", {"settings": ["Must be an object."]}),
        ({"disable_emails": "yes"}, {"settings.disable_emails": ["Must be true or false."]}),
        ({"disableEmail": 1}, {"settings.disable_emails": ["Must be true or false."]}),
        (
            {"from_name": "a\r\nBcc: b", "from_email": "a@b\n"},
            {
                "settings.from_name": ["May not contain control characters or line breaks."],
                "settings.from_email": ["May not contain control characters or line breaks."],
            },
        ),
        ({"contact_email": "ada"}, {"settings.contact_email": ["Must be an e-mail address."]}),
        ({"callback": "ftp://a.b"}, {"settings.callback": ["Must be an http or https address."]}),
        (
            {"redirect_urls": ["https://a.b", "javascript:alert(1)"]},
            {"settings.redirect_urls.1": ["Must be an http or https address."]},
        ),
        (
            {"language": "xx-bogus"},
            {"settings.language": [f"Must be one of {', '.join(shipped_languages())}."]},
        ),
        ({"language": 7}, {"settings.language": ["Must be a string."]}),
        (
            {"default_timezone": "Berlin"},
            {"settings.default_timezone": ["Must be a time zone such as Europe/Berlin."]},
        ),
        (
            {"stale_calendars": "ignore"},
            {"settings.stale_calendars": ["Must be one of warn, block."]},
        ),
        (
            {f"key{n}": n for n in range(51)},
            {"settings": ["Must have at most 50 keys."]},
        ),
        ({"big": "x" * 16_384}, {"settings": ["Must be at most 16 kB."]}),
    ],
)
def test_wrong_settings_are_refused(
    tenant: Tenant, settings: Any, errors: dict[str, list[str]]
) -> None:
    answer = tenant.put("/apps/harbour", {"name": "Other", "settings": settings})

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert tenant.get("/app").data == record(tenant)


def test_size_of_settings_is_limited(tenant: Tenant) -> None:
    for part in range(2):
        answer = tenant.put("/apps/harbour", {"settings": {f"key{part}_{n}": n for n in range(30)}})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"settings": ["Must have at most 50 keys."]},
    )
    assert len(tenant.get("/app").data["settings"]) == 31


def test_wall_times_are_read_in_the_default_zone(tenant: Tenant) -> None:
    """Where several resources are asked for, in their own zones."""
    tenant.put("/apps/harbour", {"settings": {"default_timezone": "Asia/Tokyo"}})
    ids = [tenant.make_resource(zone, zone)["id"] for zone in ("UTC", "Europe/Berlin")]
    query = {
        "resources": ids,
        "mode": "mutual",
        "from": "2026-12-01 09:00:00",
        "to": "2026-12-01 10:00:00",
    }

    found = [
        [slot["start"] for slot in tenant.post("/availability", query, **headers).data]
        for headers in ({}, {"Service-Timezone": "America/New_York"})
    ]

    assert found == [["2026-12-01T00:00:00+00:00"], ["2026-12-01T09:00:00-05:00"]]


# --- DELETE ---------------------------------------------------------------------------------------
def test_archived_app_is_hidden_and_its_data_stays(tenant: Tenant) -> None:
    member = tenant.member("owner@example.com")
    tenant.make_resource("Ada")

    answer = member.delete("/apps/harbour")

    assert (answer.status, answer.content) == (204, b"")
    assert [tenant.get("/app").status, member.get("/apps/harbour").status] == [401, 404]
    assert member.get("/apps").data == []
    archived = App.objects.get(slug="harbour")
    assert (archived.archived_at, archived.resources.count()) == (NOW, 1)


def test_archiving_again_keeps_archived_at(tenant: Tenant, clock: Any) -> None:
    tenant.delete("/apps/harbour")
    clock.shift(60)

    assert tenant.delete("/apps/harbour").status == 401
    assert App.objects.get(slug="harbour").archived_at == NOW


def test_other_methods_are_refused(tenant: Tenant) -> None:
    answers = [tenant.call("POST", "/apps/harbour"), tenant.call("DELETE", "/app")]

    assert [(answer.status, answer.error, answer.headers["Allow"]) for answer in answers] == [
        (405, error("POST"), "GET, PUT, PATCH, DELETE, HEAD, OPTIONS"),
        (405, error("DELETE"), "GET, HEAD, OPTIONS"),
    ]


def error(method: str) -> dict[str, str]:
    return {"error": f"The method {method} is not allowed here.", "code": "method_not_allowed"}


def test_unknown_query_parameters_are_refused(tenant: Tenant) -> None:
    answers = [tenant.get(f"{path}?search=a:b") for path in ("/app", "/apps", "/apps/harbour")]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"search": ["Is not a known query parameter."]})
    ] * 3
