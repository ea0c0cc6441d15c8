"""A new app with member and key, and the pages of log-in, in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone

from access.invitations import invite_member
from apps_config.models import Account, App, Credential
from notifications.links.invitations import invitation_url
from office.notifications.mail_file_viewer import FILE_BACKEND
from tests.accessibility import find_faults, load_axe
from tests.browser import Browser, Page, viewports
from tests.office.conftest import Visit
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)

MAIL = """Subject: Your appointment
From: bookings@localhost
To: marty@example.com
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="x"

--x
Content-Type: text/plain; charset="utf-8"

See you at http://127.0.0.1/book
--x
Content-Type: text/html; charset="utf-8"

<p id="hello" style="color:green">See you</p><script>document.title="run"</script>
--x
Content-Type: text/calendar; charset="utf-8"

BEGIN:VCALENDAR
END:VCALENDAR
--x--
-------------------------------------------------------------------------------
"""


@pytest.fixture
def mail_file(tmp_path: Path, settings: Any) -> str:
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = FILE_BACKEND, str(tmp_path)
    (tmp_path / "20300101-100000-1.log").write_text(MAIL)
    return "20300101-100000-1.log"


class Hand:
    """Counts clicks and typed fields; the keyboard alone is enough for each of them."""

    def __init__(self, page: Page) -> None:
        self.page, self.steps = page, 0

    def focus(self, selector: str) -> None:
        """Focus the first such element that is shown."""
        found = f"[...document.querySelectorAll({selector!r})].find((each) => each.offsetParent)"
        self.page.wait_for(f"document.readyState === 'complete' && !!{found}")
        self.page.evaluate(f"{found}.focus()")

    def press(self, selector: str) -> None:
        """Focus the element and press Enter, as a click."""
        self.steps += 1
        self.focus(selector)
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        self.page.send("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
        self.page.send("Input.dispatchKeyEvent", type="keyUp", **key)

    def tick(self, selector: str) -> None:
        self.steps += 1
        self.focus(selector)
        key = {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32}
        self.page.send("Input.dispatchKeyEvent", type="keyDown", text=" ", **key)
        self.page.send("Input.dispatchKeyEvent", type="keyUp", **key)

    def type(self, selector: str, text: str) -> None:
        self.steps += 1
        self.focus(selector)
        for letter in text:
            self.page.send("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            self.page.send("Input.dispatchKeyEvent", type="keyUp", key=letter)


def test_new_app_with_member_and_key_takes_eight_steps(
    visit: Callable[..., Visit], transactional_db: None
) -> None:
    staff = Account.objects.create_superuser("staff@example.com", "x" * 12)
    today = visit(staff, "/admin/")
    hand = Hand(today.page)

    hand.press("a[href='/admin/apps_config/app/']")
    hand.press("a[href$='/admin/apps_config/app/add/']")
    hand.type("#id_name", "Harbour Dental")
    hand.type("#id_invited_email", "doc@example.com")
    hand.tick("#id_wants_key")
    today.page.save_screenshot("app-new-1280-light")
    hand.press("[name=_save]")
    today.page.wait_for("!!document.querySelector('#secret')")
    key = today.page.evaluate("document.querySelector('#secret').value")

    app = App.objects.get(slug="harbour-dental")
    invitation = app.invitations.get()
    assert hand.steps <= 8
    assert (invitation.email, invitation.role) == ("doc@example.com", "viewer")
    assert Credential.objects.get(app=app).prefix == key[:-43]


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.deep), 390])
def test_the_page_of_an_account_fits_the_window(
    visit: Callable[..., Visit], office: Tenant, width: int
) -> None:
    staff = Account.objects.create_superuser("staff@example.com", "x" * 12)

    shown = visit(staff, f"/admin/apps_config/account/{staff.pk}/change/", width=width)

    assert shown.page.evaluate("!!document.querySelector('#id_groups')")


def test_labels_of_a_list_on_a_phone_have_one_capital_letter(
    visit: Callable[..., Visit], office: Tenant
) -> None:
    """The capital letters of a title would be wrong in German."""
    staff = Account.objects.create_superuser("staff@example.com", "x" * 12)

    page = visit(staff, "/admin/apps_config/account/", width=390).page

    label = "document.querySelector('#result_list td.field-last_login')"
    page.wait_for(f"{label}.dataset.label === 'Last login'")
    assert page.evaluate(f"getComputedStyle({label}, '::before').textTransform") == "none"


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_pages_are_accessible(
    visit: Callable[..., Visit],
    browser: Browser,
    live_server: Any,
    office: Tenant,
    mail_file: str,
    width: int,
    scheme: str,
) -> None:
    staff = Account.objects.create_superuser("staff@example.com", "x" * 12)
    Authenticator.objects.create(user=staff, type="webauthn", data={"name": "Laptop"})
    invitation = invite_member(
        app=office.app, email="doc@example.com", role="viewer", now=timezone.now()
    )
    link = invitation_url(invitation).removeprefix(django_settings.PUBLIC_URL)
    axe, look = load_axe(), f"{width}-{scheme}"
    found = {}

    pages = {
        "sessions": "/admin/account/sessions/",
        "security": "/admin/account/security/",
        "team": f"/admin/apps_config/membership/of/{office.app.pk}/",
        "e-mails": "/admin/e-mails/",
        "e-mail": f"/admin/e-mails/{mail_file}/",
    }
    for name, path in {"log-in": "/admin/login/", "invitation": link, "home": "/"}.items():
        page = browser.open(f"{live_server.url}{path}", width=width, scheme=scheme)
        page.wait_for("document.readyState === 'complete'")
        page.save_screenshot(f"{name}-{look}")
        found[name] = find_faults(page, axe)
        assert (
            page.complaints,
            page.evaluate("document.documentElement.scrollWidth") <= width,
        ) == (
            [],
            True,
        )

    seen = visit(staff, "/admin/", width=width, scheme=scheme)
    seen.expected.append("frame is sandboxed")  # the script of the e-mail
    for name, path in pages.items():
        seen.go(path)
        seen.page.save_screenshot(f"{name}-{look}")
        found[name] = find_faults(seen.page, axe)
        seen.check()

    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.usefixtures("transactional_db")
def test_only_superusers_see_sent_mails(mail_file: str, settings: Any) -> None:
    Account.objects.create_superuser("staff@example.com", "x" * 12)
    clerk = Account.objects.create_user("clerk@example.com", "x" * 12, is_staff=True)
    staff, desk = Client(), Client()
    staff.force_login(Account.objects.get(email="staff@example.com"))
    desk.force_login(clerk)
    path = f"/admin/e-mails/{mail_file}/"

    page = staff.get(path).content.decode()
    frame = staff.get(f"{path}html")
    listed = staff.get("/admin/e-mails/")
    shown = staff.get(path).context
    refused = [desk.get(each).status_code for each in ("/admin/e-mails/", path, f"{path}html")]
    other = [staff.get(f"/admin/e-mails/{name}/").status_code for name in ("..", "x.log")]
    settings.EMAIL_BACKEND = "notifications.mail.smtp_backend.SmtpBackend"
    off = staff.get("/admin/e-mails/").status_code

    assert "BEGIN:VCALENDAR" in page and 'sandbox title="The e-mail as HTML"' in page
    assert [(mail.name, mail.subject, mail.to) for mail in listed.context["mails"]] == [
        (mail_file, shown["mail"].subject, shown["mail"].to)
    ]
    assert mail_file in listed.content.decode()
    assert {"Subject", "From", "To"} <= dict(shown["headers"]).keys()
    assert all(f"<dt>{name}</dt>" in page for name, _ in shown["headers"])
    assert shown["text"].strip() and shown["text"].split()[0] in page
    assert '<p id="hello"' in frame.content.decode()
    policy = frame.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src" not in policy and "sandbox" in policy
    assert (refused, other, off) == ([403, 403, 403], [404, 404], 404)
