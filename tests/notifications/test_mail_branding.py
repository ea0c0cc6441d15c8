"""The app's logo, colour and footer in mails: in each that goes to a person."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.core.mail import EmailMultiAlternatives

from apps_config.models import App
from bookings.pages.branding import contrast, parse_color, readable_on_dark, readable_on_light
from notifications.mail import (
    compose_code_mail,
    compose_invitation_mail,
    compose_mail,
    compose_own_bookings_mail,
    compose_password_mail,
    compose_security_mail,
    compose_webhook_notice,
)
from tests.notifications.mails import DELIVERY_ID, html_of, make_app, make_letter

pytestmark = pytest.mark.usefixtures("clock")

LINK = "https://example.com/link"
ACCENT = "#ff7700"
BRANDING = {
    "accent_color": ACCENT,
    "logo": "a" * 64,
    "address": "Harbour Dental\nQuay 5",
    "imprint_url": "https://example.com/imprint",
    "privacy_url": "https://example.com/privacy",
    "contact_email": "desk@example.com",
}
SYSTEM = {"delivery_id": DELIVERY_ID, "to": ["marty@example.com"]}
MAILS: dict[str, Callable[[App], EmailMultiAlternatives]] = {
    "confirmed": lambda app: compose_mail(make_letter("confirmed_customer", app=app)),
    "request": lambda app: compose_mail(make_letter("tentative_owner", app=app)),
    "code": lambda app: compose_code_mail(
        app=app, code="123456", url=LINK, languages=[], **SYSTEM
    ),
    "own bookings": lambda app: compose_own_bookings_mail(
        app=app, url=LINK, languages=[], **SYSTEM
    ),
    "password": lambda app: compose_password_mail(app=app, url=LINK, **SYSTEM),
    "invitation": lambda app: compose_invitation_mail(app=app, role="owner", url=LINK, **SYSTEM),
    "new key": lambda app: compose_security_mail(
        app=app, kind="new_key", facts={"actor": "ann", "network": "192.0.2.1"}, **SYSTEM
    ),
    "webhook": lambda app: compose_webhook_notice(app=app, reason="", url=LINK, **SYSTEM),
}  # fmt: skip
HAS_MAIN_BUTTON = ("request", "code", "own bookings", "password", "invitation", "new key")


def colours(html: str) -> dict[str, Any]:
    """The ground of the button to press: in light inline, in dark by the style."""
    light = re.search(r'<a class="button first" [^>]*background:(#\w+);', html)
    dark = re.search(r"\.first { background: (#\w+) !important; }", html)
    return {"light": light and light[1], "dark": dark and dark[1]}


@pytest.mark.parametrize("name", MAILS)
def test_logo_and_footer_are_in_every_mail(name: str) -> None:
    mail = MAILS[name](make_app(**BRANDING))

    html = html_of(mail)
    logo = f'<img src="{settings.PUBLIC_URL}/book/logos/harbour/{"a" * 64}" alt="" height="40" '
    footer = (
        '<span dir="auto">Harbour Dental</span><br>\n<span dir="auto">Quay 5</span><br>\n'
        '<a href="https://example.com/imprint">Imprint</a> · '
        '<a href="https://example.com/privacy">Privacy</a></td></tr>'
    )
    assert (html.count(logo), html.count(footer)) == (1, 1)
    assert mail.body.endswith(
        "\n\nHarbour Dental\nQuay 5\nImprint: https://example.com/imprint\n"
        "Privacy: https://example.com/privacy\n"
    )
    assert "{{" not in html + mail.body


@pytest.mark.parametrize("name", MAILS)
def test_buttons_have_the_accent_in_light_and_dark(name: str) -> None:
    found = colours(html_of(MAILS[name](make_app(**BRANDING))))

    light, dark = readable_on_light(ACCENT), readable_on_dark(ACCENT)
    assert found == {"light": light if name in HAS_MAIN_BUTTON else None, "dark": dark}
    assert contrast(parse_color(light), (255, 255, 255)) >= 4.5
    assert contrast(parse_color(dark), parse_color("#0c1c33")) >= 4.5


@pytest.mark.parametrize("name", MAILS)
def test_mail_without_branding_has_default_colours(name: str) -> None:
    html = html_of(MAILS[name](make_app()))

    light = "#1f4f99" if name in HAS_MAIN_BUTTON else None
    assert colours(html) == {"light": light, "dark": "#9cc2ff"}
    assert ("<img" in html, "Imprint" in html, "{{" in html) == (False, False, False)


def test_contact_is_in_mails_to_customers() -> None:
    found = {name for name in MAILS if "Contact us: " in MAILS[name](make_app(**BRANDING)).body}

    assert found == {"confirmed", "code", "own bookings"}
