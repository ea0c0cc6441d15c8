"""Which app is meant: Service-App, Timekit-App, or the only one there is (section 3)."""

from collections.abc import Callable

import pytest

from apps_config.models import Account, Credential, Membership
from apps_config.services import archive_app, issue_key
from tests.world import NOW, Answer, Caller, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

APP_NOT_FOUND = (404, {"error": "App not found.", "code": "not_found", "model": "App"})
SAY_WHICH = (
    422,
    {
        "error": "Service-App: Required: this account has several apps.",
        "code": "invalid",
        "errors": {"Service-App": ["Required: this account has several apps."]},
    },
)


def outcome(answer: Answer) -> object:
    """The slug of the app that answered, or the refusal."""
    return answer.data["slug"] if answer.status == 200 else (answer.status, answer.error)


@pytest.fixture
def two(make_tenant: MakeTenant) -> tuple[Tenant, Tenant, Caller]:
    """Two apps and an account that is a member of both; a third app is a stranger's."""
    one, other = make_tenant(slug="one"), make_tenant(slug="other")
    make_tenant(slug="foreign")
    member = one.member("both@example.com")
    account = Account.objects.get(email="both@example.com")
    Membership.objects.create(account=account, app=other.app, role=Membership.VIEWER)
    return one, other, member


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, SAY_WHICH),
        ({"Service-App": "one"}, "one"),
        ({"Service-App": "other"}, "other"),
        ({"Timekit-App": "other"}, "other"),
        ({"Service-App": "one", "Timekit-App": "other"}, "one"),
        ({"Service-App": "foreign"}, APP_NOT_FOUND),
        ({"Service-App": "unknown"}, APP_NOT_FOUND),
        ({"Service-App": ""}, APP_NOT_FOUND),
        ({"Service-App": "ONE"}, APP_NOT_FOUND),
    ],
)
def test_app_header_of_an_account_with_several_apps(
    two: tuple[Tenant, Tenant, Caller], headers: dict[str, str], expected: object
) -> None:
    _, _, member = two

    assert outcome(member.get("/app", **headers)) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, "one"),
        ({"Service-App": "one"}, "one"),
        ({"Timekit-App": "one"}, "one"),
        ({"Service-App": "other"}, APP_NOT_FOUND),
        ({"Service-App": "unknown"}, APP_NOT_FOUND),
    ],
)
def test_app_header_of_a_key(
    two: tuple[Tenant, Tenant, Caller], headers: dict[str, str], expected: object
) -> None:
    one, _, _ = two

    assert outcome(one.get("/app", **headers)) == expected


@pytest.mark.parametrize("kind", [Credential.WIDGET, Credential.RESOURCE])
def test_app_header_of_another_app_is_refused_for_each_kind_of_key(
    two: tuple[Tenant, Tenant, Caller], kind: str
) -> None:
    one, _, _ = two
    resource = one.make_resource("Desk", email="desk@example.com")
    caller = one.widget()
    if kind == Credential.RESOURCE:
        caller = Caller(resource["api_token"], user="desk@example.com")
    project = one.make_project(resource["id"])["id"]
    query = {"project_id": project, "from": "now", "to": "1 hour"}

    plain, named, other = (
        caller.post("/availability", query, **headers)
        for headers in ({}, {"Service-App": "one"}, {"Service-App": "other"})
    )

    assert (plain.status, named.status, named.json) == (200, 200, plain.json)
    assert (other.status, other.error) == APP_NOT_FOUND


def test_app_header_is_optional_for_an_account_with_one_app(make_tenant: MakeTenant) -> None:
    member = make_tenant(slug="one").member("one@example.com")

    assert outcome(member.get("/app")) == "one"


def test_archived_apps_are_not_selected(two: tuple[Tenant, Tenant, Caller]) -> None:
    _, other, member = two
    archive_app(other.app, now=NOW)

    assert outcome(member.get("/app")) == "one"
    assert outcome(member.get("/app", **{"Service-App": "other"})) == APP_NOT_FOUND


def test_account_without_apps_is_refused(db: None) -> None:
    account = Account.objects.create_user("nobody@example.com")
    caller = Caller(issue_key(Credential.ACCESS, account=account)[1], user="nobody@example.com")

    answer = caller.get("/resources")

    assert (answer.status, answer.error) == (
        403,
        {"error": "This account has no app.", "code": "forbidden"},
    )


def test_control_characters_in_the_header_are_malformed(tenant: Tenant) -> None:
    answer = tenant.get("/app", **{"Service-App": "a\tb"})

    assert (answer.status, answer.error) == (
        400,
        {
            "error": "The header Service-App contains control characters.",
            "code": "malformed",
        },
    )


@pytest.mark.parametrize("mode", ["live", "test"])
def test_responses_of_test_apps_have_a_header(make_tenant: MakeTenant, mode: str) -> None:
    tenant = make_tenant(mode=mode)

    answers = [tenant.get("/app"), tenant.get("/app?unknown=1"), tenant.get("/apps/unknown")]

    expected = {"Service-TestMode": "true", "Timekit-TestMode": "true"} if mode == "test" else {}
    assert [answer.status for answer in answers] == [200, 422, 404]
    for answer in answers:
        found = {name: value for name, value in answer.headers.items() if "TestMode" in name}
        assert found == expected
