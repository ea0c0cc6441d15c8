"""A resource's forgotten password: the mail, its link, and the page behind it (section 4)."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.contrib.auth.hashers import check_password
from django.test import Client
from django.utils import timezone

from apps_config.models import Credential
from apps_config.services import LOG_IN_DESCRIPTION, archive_app
from availability.models import Resource
from availability.services import replace_password
from notifications.links.resource_password_reset import password_url
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.redeliver import redeliver
from tests.bookings.test_action_links import POLICY, Page
from tests.sinks import Mail, MailSink
from tests.world import NOW, Answer, Caller, Tenant

OLD, NEW = "correct horse battery", "some other words"
FORM = [
    *("Choose a new password", "Ada@example.com"),
    *("New password", "Use 12 to 200 characters.", "Repeat the password", "Set the password"),
]
BAD_LINK = [
    "This link is no longer valid",
    "The link was already used, is older than an hour, or is incomplete. Request a new link.",
]
DONE = ["Your password is set", "You can close this page."]


def make_ada(tenant: Tenant, **given: Any) -> Resource:
    made = tenant.make_resource(email="Ada@example.com", **{"password": OLD, **given})
    return Resource.objects.get(id=made["id"])


def ask(tenant: Tenant, email: str = "ada@example.com") -> Answer:
    return tenant.post("/resources/resetpassword", {"email": email})


def mails_planned() -> list[tuple[str, str, str]]:
    rows = Delivery.objects.order_by("id")
    return [(row.kind, row.state, row.reason) for row in rows]


# --- POST /resources/resetpassword ----------------------------------------------------------------
SAME = (200, {"data": {}})


@pytest.mark.usefixtures("clock")
def test_planned_mail_contains_no_link(tenant: Tenant) -> None:
    ada = make_ada(tenant)

    answer = ask(tenant)

    row = Delivery.objects.get()
    assert (answer.status, answer.json) == SAME
    assert (row.type, row.kind, row.recipient, row.state) == (
        *("email", "password_reset", "owner", "scheduled"),
    )
    assert (row.content, row.expires_at) == (
        {"resource_id": str(ada.id)},
        NOW + timedelta(hours=1),
    )


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("kind", ["unknown", "foreign", "deleted"])
def test_unknown_address_gets_same_response_and_no_mail(
    tenant: Tenant, make_tenant: Any, kind: str
) -> None:
    make_tenant().make_resource(email="foreign@example.com")
    gone = tenant.make_resource(email="deleted@example.com")
    tenant.delete(f"/resources/{gone['id']}")

    answer = ask(tenant, f"{kind}@example.com")

    assert (answer.status, answer.json) == SAME
    assert mails_planned() == []


@pytest.mark.usefixtures("clock")
def test_at_most_three_mails_an_hour(tenant: Tenant, clock: Any) -> None:
    make_ada(tenant)
    tenant.make_resource(email="bob@example.com")

    answers = []
    for _ in range(5):
        answers.append(ask(tenant))
        clock.shift(60)
    ask(tenant, "bob@example.com")
    counts = [Delivery.objects.count()]
    clock.shift(3600 - 5 * 60 - 1)
    ask(tenant)
    counts.append(Delivery.objects.count())
    clock.shift(1)
    ask(tenant)
    counts.append(Delivery.objects.count())

    assert [(answer.status, answer.json) for answer in answers] == [SAME] * 5
    assert counts == [4, 4, 5]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"email": ["This field is required."]}),
        ({"email": "ada"}, {"email": ["Must be an e-mail address."]}),
        ({"email": None}, {"email": ["This field may not be null."]}),
    ],
)
def test_wrong_bodies_are_refused(tenant: Tenant, body: Any, errors: dict[str, list[str]]) -> None:
    answer = tenant.post("/users/resetpassword", body)

    assert (answer.status, answer.json["errors"]) == (422, errors)


# --- The mail -------------------------------------------------------------------------------------
def send(mails: MailSink) -> list[Mail]:
    run_dispatcher("email")
    return mails.mails


def link_in(mail: Mail) -> str:
    """Path and query of the one link."""
    (url,) = re.findall(r"https?://\S+", mail.text)
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


@pytest.mark.django_db(transaction=True)
def test_mail_link_opens_the_form(tenant: Tenant, mails: MailSink, settings: Any) -> None:
    settings.PUBLIC_URL = "https://booking.example.com"
    ada = make_ada(tenant)
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"disable_emails": True}})
    ask(tenant)

    (mail,) = send(mails)

    url = f"https://booking.example.com{link_in(mail)}"
    assert url.startswith(f"https://booking.example.com/v2/resources/{ada.id}/password?signature=")
    assert (mail.to, mail.subject) == (["Ada@example.com"], "Choose a new password")
    assert mail.text.replace("\r\n", "\n") == (
        "Use this link to choose a new password. It works once, for one hour.\n\n"
        f"{url}\n\n"
        "If you did not request this e-mail, ignore it. Your password does not change.\n"
    )
    assert mails_planned() == [("password_reset", "delivered", "")]
    page = Page(post_form(Client(), link_in(mail), {"password": NEW, "again": NEW}))
    assert (page.status, page.visible_texts[-2:]) == (200, DONE)
    assert log_in(NEW).status == 200


@pytest.mark.django_db(transaction=True)
def test_a_test_app_mails_only_its_members(make_tenant: Any, mails: MailSink) -> None:
    tenant = make_tenant(mode="test")
    make_ada(tenant)
    tenant.make_resource(email="bob@example.com")
    tenant.member("bob@example.com", "viewer")
    ask(tenant)
    ask(tenant, "bob@example.com")

    sent = send(mails)

    assert [mail.to for mail in sent] == [["bob@example.com"]]
    assert mails_planned() == [
        ("password_reset", "skipped", "A test app sends e-mails only to its members."),
        ("password_reset", "delivered", ""),
    ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", ["deleted", "no address", "archived"])
def test_deleted_or_changed_resource_gets_no_mail(
    tenant: Tenant, mails: MailSink, change: str
) -> None:
    ada = make_ada(tenant)
    ask(tenant)
    if change == "deleted":
        tenant.delete(f"/resources/{ada.id}")
    if change == "no address":
        tenant.put(f"/resources/{ada.id}", {"email": None})
    if change == "archived":
        archive_app(tenant.app, now=timezone.now())

    assert send(mails) == []
    why = "The app is archived." if change == "archived" else "The recipient has no e-mail address."
    assert mails_planned() == [("password_reset", "skipped", why)]


@pytest.mark.django_db(transaction=True)
def test_redelivered_mail_expires_an_hour_later(tenant: Tenant, mails: MailSink) -> None:
    make_ada(tenant)
    ask(tenant)
    send(mails)
    later = timezone.now() + timedelta(minutes=30)

    row = redeliver(Delivery.objects.get(), now=later)

    assert (row.state, row.expires_at) == ("scheduled", later + timedelta(hours=1))


def post_form(client: Client, link: str, form: dict[str, str]) -> Any:
    """What a browser sends."""
    return client.post(link, urlencode(form), content_type="application/x-www-form-urlencoded")


# --- The page -------------------------------------------------------------------------------------
class Desk:
    """A resource of an app called Harbour, and a fresh link of its own."""

    def __init__(self, tenant: Tenant, **given: Any) -> None:
        self.tenant = tenant
        self.ada = make_ada(tenant, **given)
        self.link = self.fresh_link()
        self.client = Client()

    def fresh_link(self) -> str:
        parts = urlsplit(password_url(self.ada, NOW + timedelta(hours=1)))
        return f"{parts.path}?{parts.query}"

    def open(self, link: str | None = None) -> Page:
        return Page(self.client.get(link or self.link))

    def send(self, password: str = NEW, again: str | None = None, link: str | None = None) -> Page:
        form = {"password": password, "again": password if again is None else again}
        return Page(post_form(self.client, link or self.link, form))

    @property
    def password(self) -> str:
        return Resource.objects.get(id=self.ada.id).password


@pytest.fixture
def desk(clock: Any, make_tenant: Any) -> Desk:
    return Desk(make_tenant(name="Harbour <b>Dental</b>"))


def log_in(password: str) -> Answer:
    body = {"email": "ada@example.com", "password": password}
    return Answer(Client().post("/v2/auth", body, content_type="application/json"))


APP = "Harbour &lt;b&gt;Dental&lt;/b&gt;"


def test_get_changes_nothing(desk: Desk) -> None:
    before = desk.password

    page, head = desk.open(), desk.client.head(desk.link)

    assert (page.status, page.visible_texts) == (200, [APP, *FORM])
    assert 'value="Ada@example.com"' in page.html
    assert (head.status_code, head.content) == (200, b"")
    assert desk.password == before


def test_page_has_strict_headers(desk: Desk) -> None:
    for page in (desk.open(), desk.send(), desk.open()):
        assert POLICY.fullmatch(page.headers["Content-Security-Policy"])
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert page.headers["X-Frame-Options"] == "DENY"
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "<script" not in page.html


def test_form_sets_the_password_once(desk: Desk) -> None:
    token = log_in(OLD).data["api_token"]

    pages = [desk.send(), desk.send(password="yet another one"), desk.open()]

    assert [page.status for page in pages] == [200, 403, 403]
    assert (pages[0].visible_texts, pages[1].visible_texts) == ([APP, *DONE], BAD_LINK)
    assert check_password(NEW, desk.password)
    assert Caller(token, user="ada@example.com").get("/resources").status == 401
    assert [log_in(one).status for one in (OLD, NEW)] == [401, 200]
    assert Credential.objects.filter(description=LOG_IN_DESCRIPTION).count() == 1


def test_form_sets_a_first_password(clock: Any, tenant: Tenant) -> None:
    desk = Desk(tenant, password=None)

    assert (desk.send().status, log_in(NEW).status) == (200, 200)


@pytest.mark.parametrize(
    ("password", "again", "sentence"),
    [
        ("x" * 11, "x" * 11, "The password was too short or too long."),
        ("x" * 201, "x" * 201, "The password was too short or too long."),
        ("", "", "The password was too short or too long."),
        ("\0" * 8, "\0" * 8, "The password was too short or too long."),
        (NEW, "another one", "The passwords do not match."),
        (NEW, "", "The passwords do not match."),
    ],
)
def test_form_shows_errors_of_wrong_passwords(
    desk: Desk, password: str, again: str, sentence: str
) -> None:
    before = desk.password

    page = desk.send(password, again)

    heading, *fields = FORM
    assert (page.status, page.visible_texts) == (422, [APP, heading, sentence, *fields])
    assert desk.password == before
    assert password not in page.html or not password
    assert desk.send().status == 200


@pytest.mark.parametrize("length", [12, 200])
def test_password_length_bounds_are_accepted(desk: Desk, length: int) -> None:
    assert desk.send("ü" * length).status == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"password=\xff\xfe", b"=&=&;", b"password=a&password=b", b"%zz=%00"],
)
def test_malformed_forms_are_refused(desk: Desk, body: bytes) -> None:
    before = desk.password

    response = desk.client.generic("POST", desk.link, body, content_type="text/plain")

    assert (response.status_code, desk.password) == (422, before)


@pytest.mark.parametrize("size", [300_000])
def test_oversized_form_is_refused(desk: Desk, size: int) -> None:
    page = desk.send("x" * size)

    assert (page.status, page.visible_texts[0]) == (413, "The request is not valid")


# --- When the link does not hold ------------------------------------------------------------------
def test_a_link_lasts_an_hour(desk: Desk, clock: Any) -> None:
    clock.shift(3599)
    before = desk.open().status
    clock.shift(1)

    pages = [desk.open(), desk.send()]

    assert (before, [page.status for page in pages]) == (200, [403, 403])
    assert pages[0].visible_texts == BAD_LINK


@pytest.mark.parametrize(
    "change",
    ["password", "no password", "email", "deleted", "archived", "secret key"],
)
def test_link_ends_with_change_of_resource_or_app(desk: Desk, settings: Any, change: str) -> None:
    path = f"/resources/{desk.ada.id}"
    if change in ("password", "no password"):
        desk.tenant.put(path, {"password": "changed by staff" if change == "password" else None})
    if change == "email":
        desk.tenant.put(path, {"email": "other@example.com"})
    if change == "deleted":
        desk.tenant.delete(path)
    if change == "archived":
        archive_app(desk.tenant.app, now=NOW)
    if change == "secret key":
        settings.SECRET_KEY = "k" * 50
    before = desk.password

    pages = [desk.open(), desk.send()]

    assert [(page.status, page.visible_texts) for page in pages] == [(403, BAD_LINK)] * 2
    assert desk.password == before


def test_foreign_and_forged_links_get_equal_responses(desk: Desk) -> None:
    """Whoever guesses does not even learn which resources there are."""
    bob = Resource.objects.get(id=desk.tenant.make_resource(email="bob@example.com")["id"])
    signature = desk.link.partition("?")[2]
    path = f"/v2/resources/{desk.ada.id}/password"
    links = [
        f"/v2/resources/{bob.id}/password?{signature}",
        f"/v2/resources/0193a4c2-0000-7000-8000-00000000dead/password?{signature}",
        f"/v2/resources/nonsense/password?{signature}",
        f"{path}?signature=",
        path,
        f"{path}?signature=99999999999.{'x' * 43}",
        f"{path}?signature={'9' * 5000}.x",
        desk.link[:-1],
        desk.link.replace("signature=1", "signature=2"),
    ]

    pages = [one for link in links for one in (desk.open(link), desk.send(link=link))]

    assert {(page.status, *page.visible_texts) for page in pages} == {(403, *BAD_LINK)}
    assert check_password(OLD, desk.password)


def test_tracking_parameters_are_ignored(desk: Desk) -> None:
    assert desk.open(f"{desk.link}&utm_source=mail").status == 200


def test_other_methods_are_refused(desk: Desk) -> None:
    page = Page(desk.client.put(desk.link))

    assert (page.status, page.visible_texts[0]) == (405, "The request is not valid")
    assert page.headers["Allow"] == "GET, POST, HEAD, OPTIONS"


def test_concurrent_forms_set_one_password(desk: Desk) -> None:
    """Both were let in by the same link; the second finds that the password has changed."""
    read_before = Resource.objects.get(id=desk.ada.id)

    results = [replace_password(read_before, one, now=NOW) for one in ("first one", "second one")]

    assert results == [True, False]
    assert check_password("first one", desk.password)
