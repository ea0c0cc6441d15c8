"""An app's branding on pages and in e-mails: colour, texts, links and logo."""

import re
from typing import NamedTuple
from unicodedata import east_asian_width

from django.conf import settings

from apps_config.models import App
from bookings.pages.formatting import clean_lines, to_one_line
from common.api.fields import is_web_address

COLOR = re.compile(r"#[0-9a-f]{6}")
DIGEST = re.compile(r"[0-9a-f]{64}")
MIN_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
STEP = 0.04  # of the way to black or white
# The grounds in page.css on which the colour is ink, and the ink on a button of this colour.
LIGHT_GROUNDS = ("#ffffff", "#f2f4f7", "#e9f0fb", "#e2f6e8")
DARK_GROUNDS = ("#1c222a", "#12161b", "#24344d", "#17392a", "#0c1c33")
BLACK, WHITE = (0, 0, 0), (255, 255, 255)

# Lines of a cover text that booking pages show without shortening it, and how many letters fit in a
# line on a phone and on a wide screen.
MAX_COVER_LINES = 3
PHONE_LINE, WIDE_LINE = 46, 110

Rgb = tuple[int, int, int]


class Branding(NamedTuple):
    """Valid values; "" for each that the app has not set."""

    accent: str  # #rrggbb
    cover: str
    address: str
    imprint: str
    privacy: str
    logo: str  # path
    dark_logo: str  # path: of the logo on dark pages

    @property
    def lines(self) -> list[str]:
        return self.address.splitlines()

    @property
    def cover_is_long(self) -> bool:
        return _count_lines(self.cover, PHONE_LINE) > MAX_COVER_LINES

    @property
    def cover_is_long_when_wide(self) -> bool:
        return _count_lines(self.cover, WIDE_LINE) > MAX_COVER_LINES

    @property
    def has_footer(self) -> bool:
        return bool(self.address or self.imprint or self.privacy)

    @property
    def stylesheet_path(self) -> str:
        return f"/book/looks/{self.accent[1:]}.css" if self.accent else ""


def branding_of(app: App) -> Branding:
    """Return the app's branding. Values that bypassed the services count only if they are valid."""
    texts = {name: value for name, value in app.settings.items() if isinstance(value, str)}
    links = [texts.get(name, "") for name in ("imprint_url", "privacy_url")]
    imprint, privacy = (link if is_web_address(link) else "" for link in links)
    accent = texts.get("accent_color", "").lower()
    logo, dark_logo = (
        f"/book/logos/{app.slug}/{digest}" if DIGEST.fullmatch(digest) else ""
        for digest in (texts.get("logo", ""), texts.get("dark_logo", ""))
    )
    return Branding(
        accent=accent if COLOR.fullmatch(accent) else "",
        cover=clean_lines(texts.get("cover_text", ""), 1000),
        address="\n".join(map(to_one_line, texts.get("address", "").splitlines()[:8])),
        imprint=imprint,
        privacy=privacy,
        logo=logo,
        dark_logo=dark_logo,
    )


def _count_lines(text: str, letters: int) -> int:
    """Return how many lines of so many letters the text takes; a wide letter counts twice.

    >>> _count_lines("abc\n\nabcd", 3), _count_lines("予約", 3)
    (4, 2)
    """
    widths = [
        sum(2 if east_asian_width(each) in "WF" else 1 for each in line)
        for line in text.splitlines()
    ]
    return sum(max(1, -(-width // letters)) for width in widths)


def absolute_url(path: str) -> str:
    return f"{settings.PUBLIC_URL}{path}" if path else ""


# --- Contrast (WCAG 2.2) --------------------------------------------------------------------------
def readable_on_light(color: str) -> str:
    """Return the colour, darkened as far as it needs to be read on light grounds."""
    return _with_contrast(color, LIGHT_GROUNDS, BLACK)


def readable_on_dark(color: str) -> str:
    """Return the colour, lightened as far as it needs to be read on dark grounds."""
    return _with_contrast(color, DARK_GROUNDS, WHITE)


def _with_contrast(color: str, grounds: tuple[str, ...], end: Rgb) -> str:
    start, share = parse_color(color), 0.0
    mixed = start
    while min(contrast(mixed, parse_color(ground)) for ground in grounds) < MIN_CONTRAST:
        share += STEP
        mixed = _mix(start, end, min(share, 1.0))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def _mix(start: Rgb, end: Rgb, share: float) -> Rgb:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(start, end, strict=True))
    return red, green, blue


def parse_color(text: str) -> Rgb:
    """Return the parts of `#rrggbb`, 0 to 255 each."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def contrast(first: Rgb, second: Rgb) -> float:
    """Return the contrast ratio, 1 to 21."""
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: Rgb) -> float:
    """Return the relative luminance, 0 to 1."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in color)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
