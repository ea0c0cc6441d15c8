"""The app's own look: colours that can be read, and values that are shown only if valid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps_config.models import App
from bookings.pages.branding import (
    DARK_GROUNDS,
    LIGHT_GROUNDS,
    MIN_CONTRAST,
    Branding,
    branding_of,
    contrast,
    parse_color,
    readable_on_dark,
    readable_on_light,
)


@pytest.mark.parametrize(
    ("color", "light", "dark"),
    [
        ("#1f4f99", "#1f4f99", "#8ba3ca"),
        ("#ffff00", "#707000", "#ffff00"),
        ("#000000", "#000000", "#a3a3a3"),
        ("#ffffff", "#666666", "#ffffff"),
    ],
)
def test_a_readable_colour_is_chosen(color: str, light: str, dark: str) -> None:
    assert (readable_on_light(color), readable_on_dark(color)) == (light, dark)


@given(st.integers(0, 0xFFFFFF))
def test_every_colour_becomes_readable(number: int) -> None:
    color = f"#{number:06x}"
    light, dark = parse_color(readable_on_light(color)), parse_color(readable_on_dark(color))

    assert min(contrast(light, parse_color(ground)) for ground in LIGHT_GROUNDS) >= MIN_CONTRAST
    assert min(contrast(dark, parse_color(ground)) for ground in DARK_GROUNDS) >= MIN_CONTRAST


def test_black_and_white_have_the_greatest_contrast() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)


def test_invalid_stored_values_are_ignored() -> None:
    wrong = {
        "accent_color": "red;}",
        "cover_text": 5,
        "address": ["x"],
        "imprint_url": "javascript:x",
        "privacy_url": None,
        "logo": "../x",
        "dark_logo": 7,
    }
    right = {
        "accent_color": "#1F4F99",
        "cover_text": " Welcome\r\nto us ",
        "address": "Quay 5\n12345  Berlin",
        "imprint_url": "https://example.com/imprint",
        "privacy_url": "https://example.com/privacy",
        "logo": "0" * 64,
        "dark_logo": "1" * 64,
    }

    assert branding_of(App(slug="a", settings=wrong)) == Branding("", "", "", "", "", "", "")
    assert branding_of(App(slug="a", settings=right)) == Branding(
        accent="#1f4f99",
        cover="Welcome\nto us",
        address="Quay 5\n12345 Berlin",
        imprint="https://example.com/imprint",
        privacy="https://example.com/privacy",
        logo=f"/book/logos/a/{'0' * 64}",
        dark_logo=f"/book/logos/a/{'1' * 64}",
    )
