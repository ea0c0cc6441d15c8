"""The pages of an app's set-up in a real browser: wide and narrow, light and dark."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.servers.basehttp import ThreadedWSGIServer
from django.db import DatabaseError
from django.urls import reverse

from apps_config.models import Account, Credential
from notifications.models import Attempt, Delivery, EmailTemplate, Webhook
from notifications.webhooks.services import create_webhook, send_test
from tests.accessibility import find_faults, load_axe
from tests.browser import Page, viewports
from tests.office.conftest import Visit, member_of
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)

# What the docs show.
SHOWN = [(1280, "light"), (390, "dark")]
PICTURES = ("app", "reminders", "members", "webhook", "delivery", "template", "app-history")
# What stands in the frame of the theme and is all ours.
OWN_PAGES = ("app-history", "key-revoke", "members", "delivery", "templates", "template")
OWN_PAGES += ("reminders", "webhook", "key-new")
MAIL = {
    "type": "email",
    "settings": {"recipient": "customer", "subject": "See you"},
    "when": {"type": "before", "unit": "hours", "time": 1},
}
CALL = {
    "type": "webhook",
    "settings": {"url": "https://example.com/hook"},
    "when": {"type": "after", "unit": "days", "time": 2},
}


@pytest.fixture(scope="session", autouse=True)
def _tolerate_closed_threads() -> Iterator[None]:
    """A thread of the live server that ends after its test can't close SQLite's connection in
    memory, which is the test's."""
    close = ThreadedWSGIServer._close_connections

    def close_quietly(server: ThreadedWSGIServer) -> None:
        with suppress(DatabaseError):
            close(server)

    patch = pytest.MonkeyPatch()
    patch.setattr(ThreadedWSGIServer, "_close_connections", close_quietly)
    yield
    patch.undo()


@pytest.fixture
def owner(office: Tenant) -> Account:
    return member_of(office, "owner")


@pytest.fixture
def full(office: Tenant) -> Tenant:
    """An app with something on every page."""
    office.put(
        f"/apps/{office.app.slug}",
        {
            "settings": {
                "from_name": "Harbour Dental",
                "redirect_urls": ["https://harbour.example.com/thanks"],
                "default_timezone": "Europe/Berlin",
                "shop": {"colour": "blue", "id": 7},
            },
            "event_notifications": [MAIL, CALL],
        },
    )
    member_of(office, "viewer", "vera@example.com")
    office.put("/templates/confirmed_customer", {"subject": "See you on {{ date }}"})
    webhook, _ = create_webhook(
        app=office.app,
        given={
            "url": "https://example.com/hook",
            "graph": "confirm_decline",
            "states": ["confirmed"],
        },
    )
    now = datetime.now(UTC)
    for _ in range(3):
        send_test(webhook, now=now)
    delivery = Delivery.objects.first()
    Attempt.objects.create(
        app_id=delivery.app_id,
        delivery=delivery,
        at=now,
        seconds=0.4,
        response_code=500,
        error="Status 500",
        excerpt="<h1>Server error</h1>",
    )
    Delivery.objects.filter(pk=delivery.pk).update(
        state="failed", reason="It failed 12 times.", next_at=None, finished_at=now, tries=12
    )
    return office


def admin_page(name: str, *args: Any) -> str:
    return reverse(f"admin:{name}", args=args)


def pages(tenant: Tenant) -> dict[str, str]:
    webhook, delivery = Webhook.objects.get(), Delivery.objects.first()
    app, key = tenant.app, Credential.objects.get()
    return {
        "app": admin_page("apps_config_app_change", app.pk),
        "app-history": admin_page("apps_config_app_history", app.pk),
        "reminders": f"{admin_page('apps_config_app_change', app.pk)}#event_notifications-group",
        "keys": admin_page("apps_config_credential_changelist"),
        "key-new": f"{admin_page('apps_config_credential_add')}?app={app.pk}",
        "key": admin_page("apps_config_credential_change", key.pk),
        "key-revoke": admin_page("apps_config_credential_revoke", key.pk),
        "members": admin_page("apps_config_membership_of", app.pk),
        "webhooks": admin_page("notifications_webhook_changelist"),
        "webhook": admin_page("notifications_webhook_change", webhook.pk),
        "webhook-new": admin_page("notifications_webhook_add"),
        "deliveries": admin_page("notifications_delivery_changelist"),
        "delivery": admin_page("notifications_delivery_change", delivery.pk),
        "templates": admin_page("notifications_emailtemplate_changelist"),
        "template": admin_page("notifications_emailtemplate_edit", app.pk, "confirmed_customer"),
    }


OURS = "document.getElementById('content')"


@pytest.mark.parametrize(("width", "scheme"), viewports(only="wide"))
def test_pages_are_accessible(
    full: Tenant, owner: Account, visit: Callable[..., Visit], width: int, scheme: str
) -> None:
    axe, faults = load_axe(), {}
    seen = visit(owner, "/admin/", width=width, scheme=scheme)
    for name, path in pages(full).items():
        seen.go(path)
        if name == "template":
            seen.page.wait_for("document.getElementById('preview-subject').textContent !== ''")
        if scheme == "dark":
            seen.page.wait_for("document.documentElement.classList.contains('dark')")
        if (width, scheme) in SHOWN and name in PICTURES:
            seen.page.save_screenshot(f"setup-{name}-{width}-{scheme}")

        assert len(seen.page.texts("main h1, h1, h2, #header h1, .office-card h2")) > 0
        assert (name, low_contrast(seen.page)) == (name, [])
        if name in OWN_PAGES:
            # The template's preview is a frame, shut off from the page and from axe-core.
            faults[name] = find_faults(seen.page, axe, OURS)
        seen.check()

    assert faults == {name: [] for name in OWN_PAGES}


def low_contrast(page: Page) -> list[str]:
    """Texts on cards of ours that are hard to read (WCAG 2: under 4.5 to 1)."""
    return page.evaluate(
        """(() => {
          const canvas = document.createElement('canvas').getContext('2d',
            {willReadFrequently: true});
          const rgb = color => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color;
            canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
          const light = color => { const [r, g, b] = rgb(color).slice(0, 3).map(value => {
            const part = value / 255;
            return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const ground = one => { const color = getComputedStyle(one).backgroundColor;
            return rgb(color)[3] > 200 || !one.parentElement ? color : ground(one.parentElement); };
          const found = [];
          for (const card of document.querySelectorAll('.office-card, .office-links')) {
            const texts = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
            while (texts.nextNode()) {
              const one = texts.currentNode.parentElement;
              if (!texts.currentNode.data.trim() || !one.checkVisibility()) continue;
              const style = getComputedStyle(one);
              const [a, b] = [light(style.color), light(ground(one))];
              const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
              const words = texts.currentNode.data.trim().slice(0, 40);
              if (ratio < 4.5) found.push(`${ratio.toFixed(1)} ${one.className} ${words}`);
            }
          }
          return found;
        })()"""
    )


def set_value(page: Page, selector: str, value: str) -> None:
    """As if it had been typed or chosen."""
    page.evaluate(
        f"(() => {{ const one = document.querySelector({selector!r}); one.value = {value!r};"
        " one.dispatchEvent(new Event('input', {bubbles: true}));"
        " one.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def submit(page: Page, selector: str) -> None:
    """Press a button and wait for the next page."""
    page.evaluate("window.isOld = true")
    page.click(selector)
    page.wait_for("window.isOld === undefined && document.readyState === 'complete'")


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.deep)])
def test_reminder_summary_follows_input(
    office: Tenant, editor: Account, visit: Callable[..., Visit], width: int
) -> None:
    office.put(f"/apps/{office.app.slug}", {"event_notifications": [MAIL]})
    page = visit(editor, admin_page("apps_config_app_change", office.app.pk), width=width).page
    sentence = ".form-group.original h3 strong"

    def hidden(name: str) -> bool:
        return page.evaluate(
            f"!document.querySelector('[name=event_notifications-0-{name}]').checkVisibility()"
        )

    first = page.texts(sentence)
    before = [hidden(name) for name in ("recipient", "subject", "url", "method")]
    set_value(page, "[name=event_notifications-0-when_time]", "2")
    set_value(page, "[name=event_notifications-0-type]", "webhook")
    set_value(page, "[name=event_notifications-0-url]", "https://example.com/x")
    second = page.texts(sentence)
    after = [hidden(name) for name in ("recipient", "subject", "url", "method")]
    submit(page, "[name=_save]")

    assert first == ["1 hour before the start, e-mail “See you” to the customer"]
    assert second == ["2 hours before the start, POST to https://example.com/x"]
    assert (before, after) == ([False, False, True, True], [True, True, False, False])
    assert office.get("/app").data["event_notifications"] == [
        {
            "type": "webhook",
            "settings": {"url": "https://example.com/x", "method": "post"},
            "when": {"type": "before", "unit": "hours", "time": 2},
        }
    ]


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.deep), 390])
def test_a_reminder_is_added(
    office: Tenant, editor: Account, visit: Callable[..., Visit], width: int
) -> None:
    page = visit(editor, admin_page("apps_config_app_change", office.app.pk), width=width).page

    add = "document.querySelector('#event_notifications-group a.add-row')"
    page.wait_for(f"!!{add}")
    page.evaluate(f"{add}.click()")
    page.wait_for("!!document.querySelector('[name=event_notifications-0-type]')")
    for name, value in {
        "when_time": "0",
        "when_unit": "mins",
        "when_type": "before",
        "type": "email",
        "recipient": "owner",
    }.items():
        set_value(page, f"[name=event_notifications-0-{name}]", value)
    words = page.texts(".form-group:not(.empty-form) h3 strong")
    submit(page, "[name=_save]")

    assert words == ["at the start, e-mail to the owner"]
    assert [str(notification) for notification in office.app.event_notifications.all()] == words


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.deep)])
def test_key_is_created_shown_and_copied(
    office: Tenant, owner: Account, visit: Callable[..., Visit], width: int
) -> None:
    office.make_resource("Ada")
    seen = visit(owner, admin_page("apps_config_app_change", office.app.pk), width=width)
    page = seen.page
    submit(page, f'a[href$="?app={office.app.pk}"][href*="credential/add"]')
    resource = "document.querySelector('.field-resource').checkVisibility()"
    page.wait_for(f"{resource} === false")
    set_value(page, "#id_kind", "resource")
    page.wait_for(f"{resource} === true")
    set_value(page, "#id_kind", "server")
    set_value(page, "#id_description", "Night job")
    page.evaluate("window.isOld = true; document.querySelector('[name=_save]').click()")
    page.wait_for("window.isOld === undefined && !!document.getElementById('secret')")
    page.browser.send(
        "Browser.grantPermissions",
        {
            "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
            "browserContextId": page.browser.context_id,
        },
    )
    text = page.evaluate("document.getElementById('secret').value")
    page.click("[data-copy=secret]")
    page.wait_for("document.getElementById('copied').textContent !== ''")

    assert page.texts("#copied") == ["Copied."]
    key = Credential.objects.get(description="Night job")
    assert text.startswith(key.prefix)
    assert len(text) == len(key.prefix) + 43


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.deep), 390])
def test_preview_follows_input(
    office: Tenant, editor: Account, visit: Callable[..., Visit], width: int
) -> None:
    path = admin_page("notifications_emailtemplate_edit", office.app.pk, "confirmed_customer")
    seen = visit(editor, path, width=width)
    seen.expected = ["422", "Blocked script execution in 'about:srcdoc'"]
    page = seen.page

    def shown(part: str) -> str:
        return f"document.getElementById('preview-{part}').textContent"

    page.wait_for(f"{shown('subject')}.startsWith('Confirmed: Check-up')")
    set_value(page, "#subject", "See you, {{ name }}")
    page.wait_for(f"{shown('subject')} === 'See you, Marty McFly'")
    set_value(page, "#html", "<p>Dear {{ name }}</p><script>parent.isBroken = true</script>")
    page.wait_for("document.getElementById('preview-html').srcdoc.includes('Dear Marty McFly')")
    set_value(page, "#text", "{{ nothing }}")
    page.wait_for("document.getElementById('text-fault').textContent !== ''")
    fault = page.texts("#text-fault")
    set_value(page, "#text", "Hello")
    page.wait_for(f"{shown('text')}.startsWith('Hello')")
    no_fault = page.texts("#text-fault")
    set_value(page, "#html", "<p>{{ details }}</p>")
    submit(page, "#template button[type=submit]")

    assert page.evaluate("window.isBroken") is None
    assert (len(fault[0]) > 10, no_fault) == (True, [""])
    own = EmailTemplate.objects.get()
    assert (own.subject, own.text, own.html) == (
        "See you, {{ name }}",
        "Hello",
        "<p>{{ details }}</p>",
    )


def test_states_of_a_webhook_follow_its_graph(
    office: Tenant, editor: Account, visit: Callable[..., Visit]
) -> None:
    page = visit(editor, admin_page("notifications_webhook_add")).page

    def offered() -> list[str]:
        return page.evaluate(
            "[...document.querySelectorAll('input[name=states]')]"
            ".filter(one => one.checkVisibility()).map(one => one.value)"
        )

    every = offered()
    set_value(page, "#id_graph", "instant_payment")
    paid = offered()

    assert {"confirmed", "paid", "rescheduled"} <= set(every)
    assert ("paid" in paid, "confirmed" in paid, "rescheduled" in paid) == (True, False, True)


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_lockout_and_password_pages_are_accessible(
    office: Tenant, visit: Callable[..., Visit], settings: Any, width: int, scheme: str
) -> None:
    settings.FAILED_PASSWORDS_PER_HOUR = 1
    account = Account.objects.create_superuser("staff@example.com", "x" * 12)
    link = admin_page("apps_config_account_link", account.pk)
    page = visit(account, link, width=width, scheme=scheme).page
    submit(page, ".office-danger")
    address = page.evaluate("document.getElementById('secret').value")
    # Not as the account itself: its next log-in ends the link.
    nobody = Account.objects.create_user("nobody@example.com")
    chosen = visit(nobody, urlsplit(address).path, width=width, scheme=scheme)
    set_value(chosen.page, "#id_new_password1", "harbour-lights-7")
    set_value(chosen.page, "#id_new_password2", "harbour-lights-7")
    submit(chosen.page, ".office-primary")

    assert chosen.page.texts("h1")[-1] == "Your password is set"
    door = visit(nobody, "/admin/login/", width=width, scheme=scheme)
    door.expected = ["429"]
    for _ in range(2):
        set_value(door.page, "#id_username", "staff@example.com")
        set_value(door.page, "#id_password", "wrong")
        submit(door.page, "#login-form button[type=submit], .submit-row")
    assert door.page.texts("h1")[-1] == "Too many wrong passwords"
