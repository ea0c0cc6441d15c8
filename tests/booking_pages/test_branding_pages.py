"""The app's own look on its pages and in its e-mails: colour, texts, links and logo."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps_config.models import App, DarkLogo
from apps_config.services import store_logo
from common.images import small_logo
from tests.booking_pages.test_book_page import POLICY, Shown, make_page
from tests.images import LOGO, OTHER_LOGO, PNG, SVG
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")
LOOK = {
    "accent_color": "#FFFF00",
    "cover_text": "Welcome <b>\nto us",
    "address": "Harbour Dental\nQuay 5",
    "imprint_url": "https://example.com/imprint",
    "privacy_url": "https://example.com/privacy",
}


def test_branding_is_on_every_page(tenant: Tenant) -> None:
    path = make_page(tenant)
    plain = Shown(path)
    saved = tenant.put(f"/apps/{tenant.app.slug}", {"settings": LOOK})
    digest = hashlib.sha256(LOGO.content).hexdigest()
    store_logo(tenant.app, LOGO)

    project, app = Shown(path), Shown(f"/book/{tenant.app.slug}")

    assert saved.data["settings"] | LOOK == saved.data["settings"] | {"accent_color": "#FFFF00"}
    assert saved.data["settings"]["accent_color"] == "#ffff00"
    assert "<footer>" not in plain.html and "looks/" not in plain.html
    for page in (project, app):
        assert page.words("p", "lines") == ["Welcome <b> to us"]
        assert page.words("address") == ["Harbour DentalQuay 5"]
        assert re.findall(r"<footer>.*?</footer>", page.html, re.S)[0].count("<a ") == 2
        assert f'src="/book/logos/{tenant.app.slug}/{digest}"' in page.html
        assert 'href="/book/looks/ffff00.css"' in page.html
        headers = page.response.headers
        parts = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert parts == POLICY


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("Welcome " * 17, "cover"),
        ("Welcome " * 18, "cover long"),
        ("Welcome " * 41, "cover long"),
        ("Welcome " * 42, "cover long long-when-wide"),
        ("予約" * 34, "cover"),
        ("予約" * 35, "cover long"),
        ("a\nb\nc\nd", "cover long long-when-wide"),
    ],
)
def test_a_long_text_at_the_top_can_be_shortened(tenant: Tenant, text: str, classes: str) -> None:
    path = make_page(tenant)
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"cover_text": text}})

    pages = [Shown(path), Shown(f"/book/{tenant.app.slug}")]

    for page in pages:
        assert re.findall(r'<section aria-label="[^"]*" class="(cover[^"]*)">', page.html) == [
            classes
        ]
        assert page.words("summary") == ([] if classes == "cover" else ["Show moreShow less"])
        assert page.words("p", "lines") == [" ".join(text.split())]


def test_stylesheet_of_a_colour(db: None) -> None:
    answer = Client().get("/book/looks/ffff00.css")

    assert (answer.status_code, answer["Content-Type"]) == (200, "text/css")
    assert answer["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.content.decode() == (
        ":root { --button: #707000; }\n"
        "@media (prefers-color-scheme: dark) { :root { --button: #ffff00; } }\n"
    )
    assert Client().get("/book/looks/red.css").status_code == 404


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"accent_color": "red"}, "settings.accent_color"),
        ({"accent_color": "#12345g"}, "settings.accent_color"),
        ({"cover_text": "x" * 1001}, "settings.cover_text"),
        ({"address": 5}, "settings.address"),
        ({"imprint_url": "javascript:x"}, "settings.imprint_url"),
        ({"privacy_url": "x"}, "settings.privacy_url"),
    ],
)
def test_wrong_branding_is_refused(tenant: Tenant, settings: dict[str, Any], key: str) -> None:
    answer = tenant.put(f"/apps/{tenant.app.slug}", {"settings": settings})

    assert (answer.status, list(answer.json["errors"])) == (422, [key])


# --- The logo -------------------------------------------------------------------------------------
def test_logo_is_served_with_its_type(
    make_tenant: Callable[..., Tenant],
) -> None:
    one, other = make_tenant(), make_tenant()
    app = store_logo(one.app, LOGO)
    path = f"/book/logos/{one.app.slug}/{app.settings['logo']}"

    answer = Client().get(path)
    others = Client().get(path.replace(one.app.slug, other.app.slug))
    store_logo(one.app, None)

    assert (answer.status_code, answer.content) == (200, LOGO.content)
    assert answer["Content-Type"] == "image/png"
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert (others.status_code, Client().get(path).status_code) == (404, 404)
    assert "logo" not in App.objects.get(id=one.app.id).settings


def test_dark_pages_have_their_own_logo(tenant: Tenant) -> None:
    path = make_page(tenant)
    app = store_logo(store_logo(tenant.app, LOGO), OTHER_LOGO, kind=DarkLogo)
    logos = f"/book/logos/{app.slug}/"
    light, dark = (logos + app.settings[name] for name in ("logo", "dark_logo"))
    page = Shown(path)
    shown = Client().get(dark)
    store_logo(app, None, kind=DarkLogo)

    source = f'<source srcset="{dark}" media="(prefers-color-scheme: dark)">'
    assert f'<picture>{source}<img class="logo" src="{light}" alt=""></picture>' in page.html
    assert (shown.status_code, shown.content) == (200, OTHER_LOGO.content)
    assert (Client().get(dark).status_code, Client().get(light).status_code) == (404, 200)
    settings = App.objects.get(id=app.id).settings
    assert ("logo" in settings, "dark_logo" in settings) == (True, False)


# --- The back office ------------------------------------------------------------------------------
def test_app_form_stores_branding_and_logo(tenant: Tenant, admin_client: Client) -> None:
    address = f"/admin/apps_config/app/{tenant.app.id}/change/"
    page = admin_client.get(address)
    given = page.context["adminform"].form.initial
    formset = page.context["inline_admin_formsets"][0].formset
    values = {name: "" if value is None else value for name, value in given.items()}
    values |= {f"{formset.prefix}-TOTAL_FORMS": "0", f"{formset.prefix}-INITIAL_FORMS": "0"}
    values = {name: value for name, value in values.items() if value is not False}

    def save(**changed: Any) -> Any:
        return admin_client.post(address, values | changed)

    wrong = save(logo_file=SimpleUploadedFile("x.png", SVG))
    saved = save(
        accent_color="#1f4f99", address="Quay 5", logo_file=SimpleUploadedFile("x.svg", PNG)
    )
    shown = admin_client.get(address).content.decode()
    save(dark_logo_file=SimpleUploadedFile("dark.png", PNG))
    with_both = App.objects.get(id=tenant.app.id).settings
    save(removes_dark_logo="on")
    with_one = App.objects.get(id=tenant.app.id).settings

    assert with_both["dark_logo"] == with_both["logo"] == with_one["logo"]
    assert "dark_logo" not in with_one
    assert wrong.context["adminform"].form.errors == {
        "logo_file": ["Must be a PNG, JPEG or WebP image."]
    }
    assert saved.status_code == 302
    settings = App.objects.get(id=tenant.app.id).settings
    names = ("accent_color", "address", "logo")
    assert {name: settings.get(name) for name in names} == {
        "accent_color": "#1f4f99",
        "address": "Quay 5",
        "logo": hashlib.sha256(small_logo(PNG, path="").content).hexdigest(),
    }
    assert "Remove the logo" in shown
