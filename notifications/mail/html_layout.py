"""The look of a mail: one column of tables that mail programs survive, light and dark.

What matters is said inline, since some programs drop <style>; what <style> adds is the dark mode
and the narrow screen. No font, and no picture but the app's logo. Every pair of ink and ground
has a contrast of 4.5 or more.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

FONT = (
    "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,'Helvetica Neue',Arial,"
    "'Noto Sans',sans-serif"
)


# Of the button to press, where the app has no accent colour: in light and in dark.
BUTTON, DARK_BUTTON = "#1f4f99", "#9cc2ff"


class Tone(NamedTuple):
    """The colours of a badge: its class, its ink and its ground, in light."""

    name: str
    ink: str
    ground: str


POSITIVE = Tone("positive", "#14532d", "#dcf5e3")
NEGATIVE = Tone("negative", "#8a1c1c", "#fde7e7")
WAITING = Tone("waiting", "#713f12", "#fdf0cf")
NEUTRAL = Tone("neutral", "#1e3a6e", "#e3edfb")

STYLE = """
:root { color-scheme: light dark; supported-color-schemes: light dark; }
body { margin: 0; padding: 0; -webkit-text-size-adjust: 100%; }
a { color: #1f4f99; }
@media (max-width: 480px) {
  .sheet { padding: 24px 20px !important; }
  td.outer { padding: 16px 10px !important; }
  .label, .value { display: block !important; width: auto !important; }
  .label { padding: 12px 0 0 !important; border-bottom: 0 !important; }
  .value { padding: 2px 0 12px !important; }
  .button { display: block !important; margin: 0 0 12px !important; }
}
@media (prefers-color-scheme: dark) {
  body, .outer { background: #12161b !important; }
  .sheet { background: #1c222a !important; border-color: #303944 !important; }
  .ink, .value, .heading { color: #e8ecf1 !important; }
  .faint, .label { color: #aab5c2 !important; }
  .label, .value { border-color: #303944 !important; }
  .quote { background: #252d37 !important; border-color: #5b7fb5 !important; }
  .positive { background: #17392a !important; color: #a6e6bf !important; }
  .negative { background: #45201f !important; color: #f7c0bd !important; }
  .waiting { background: #41330f !important; color: #f4d78c !important; }
  .neutral { background: #1d3152 !important; color: #bcd4fb !important; }
  .first { background: {{ accent_dark }} !important; }
  .first { border-color: {{ accent_dark }} !important; }
  .first { color: #0c1c33 !important; }
  .other { border-color: #5d6a79 !important; color: #e8ecf1 !important; }
  a { color: #9cc2ff; }
}
""".strip()


def mail_page(*, tone: Tone, badge: str, heading: str, preheader: str, body: str) -> str:
    """A whole HTML mail as a template, with the app's name, logo, footer and colour, the language
    and its direction as placeholders.

    All arguments are HTML. The preheader is what a mail program shows beside the subject; what
    follows it keeps the body's first words out of there.
    """
    return f"""<!DOCTYPE html>
<html lang="{{{{ language }}}}" dir="{{{{ direction }}}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>{heading}</title>
<style>
{STYLE}
</style>
</head>
<body class="outer" style="margin:0;padding:0;background:#f2f4f7;">
<div style="display:none;max-height:0;overflow:hidden;">{preheader}{"&#847;&zwnj;&nbsp;" * 40}</div>
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0">
<tr><td class="outer" align="center" style="padding:32px 16px;background:#f2f4f7;">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" \
style="max-width:560px;table-layout:fixed;">
<tr><td class="faint" style="padding:0 4px 12px;color:#556270;overflow-wrap:anywhere;\
font:600 14px/20px {FONT};">{{{{ logo }}}}<span dir="auto">{{{{ app }}}}</span></td></tr>
<tr><td class="sheet" style="padding:32px;background:#ffffff;border:1px solid #dfe4ea;\
border-radius:12px;overflow-wrap:anywhere;color:#1d2733;font:400 16px/24px {FONT};">
<span class="{tone.name}" style="display:inline-block;padding:3px 10px;border-radius:6px;\
background:{tone.ground};color:{tone.ink};font:600 13px/18px {FONT};">{badge}</span>
<h1 class="heading" dir="auto" style="margin:14px 0 16px;color:#1d2733;font:650 24px/31px {FONT};">\
{heading}</h1>
{body}
</td></tr>{{{{ footer }}}}
</table>
</td></tr>
</table>
</body>
</html>
"""


def details_html(rows: Sequence[tuple[str, str]]) -> str:
    """A table of labels and values; the values are HTML already."""
    if not rows:
        return ""
    label = (
        "width:96px;padding:11px 16px 11px 0;border-bottom:1px solid #e6eaef;color:#556270;"
        f"font:400 14px/24px {FONT};text-align:start;vertical-align:top;"
    )
    value = (
        "padding:11px 0;border-bottom:1px solid #e6eaef;color:#1d2733;"
        f"font:500 16px/24px {FONT};vertical-align:top;overflow-wrap:anywhere;"
    )
    lines = [
        f'<tr><th class="label" scope="row" style="{label}">{escape(name)}</th>'
        f'<td class="value" dir="auto" style="{value}">{content}</td></tr>'
        for name, content in rows
    ]
    return (
        '<table width="100%" cellpadding="0" cellspacing="0" border="0" '
        'style="margin:20px 0 0;table-layout:fixed;">\n' + "\n".join(lines) + "\n</table>"
    )


def quote_block(content: str) -> str:
    """A person's own words, HTML already."""
    if not content:
        return ""
    return (
        '<div class="quote ink" dir="auto" '
        'style="margin:20px 0 0;padding:12px 16px;background:#f2f5f9;'
        f'border-inline-start:3px solid #7d9cc9;border-radius:4px;color:#1d2733;">{content}</div>'
    )


def logo_html(url: str) -> str:
    """The app's logo above its name."""
    if not url:
        return ""
    return (
        f'<img src="{escape(url)}" alt="" height="40" '
        'style="display:block;height:40px;max-width:200px;margin:0 0 8px;border:0;">'
    )


def footer_html(lines: Sequence[str], links: Sequence[tuple[str, str]]) -> str:
    """A row with the app's postal address and links (label, address)."""
    if not lines and not links:
        return ""
    rows = [f'<span dir="auto">{escape(line)}</span>' for line in lines]
    anchors = [f'<a href="{escape(url)}">{escape(label)}</a>' for label, url in links]
    content = "<br>\n".join([*rows, *([" · ".join(anchors)] if anchors else [])])
    return (
        '\n<tr><td class="faint" style="padding:12px 4px 0;color:#556270;overflow-wrap:anywhere;'
        f'font:400 14px/20px {FONT};">{content}</td></tr>'
    )


class Button(NamedTuple):
    """`style`: `first` is the one to press, `other` is outlined, `link` is a plain link."""

    label: str
    url: str
    style: str = "first"


def buttons_html(buttons: Sequence[Button], *, color: str = BUTTON) -> str:
    """`color`: of the button to press, readable under white text."""
    if not buttons:
        return ""
    shape = (
        "display:inline-block;margin:0 8px 8px 0;padding:11px 22px;border-radius:8px;"
        f"font:600 16px/22px {FONT};text-align:center;text-decoration:none;"
    )
    styles = {
        "first": f"{shape}background:{color};border:1px solid {color};color:#ffffff;",
        "other": f"{shape}border:1px solid #7b8794;color:#1d2733;",
        "link": f"display:inline-block;padding:12px 0;font:400 16px/22px {FONT};",
    }
    links = [
        f'<a class="{"" if button.style == "link" else "button "}{button.style}" '
        f'href="{escape(button.url)}" style="{styles[button.style]}">{escape(button.label)}</a>'
        for button in buttons
    ]
    return '<div style="margin:28px 0 0;">\n' + "\n".join(links) + "\n</div>"


def links_html(lines: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> str:
    """One line per (text before the links, [(label, address)]); "" without any."""
    if not lines:
        return ""
    rows = []
    for text, links in lines:
        anchors = " · ".join(f'<a href="{escape(url)}">{escape(label)}</a>' for label, url in links)
        rows.append(f"{escape(text)} {anchors}".strip())
    return (
        f'<p class="faint" style="margin:20px 0 0;color:#556270;font:400 14px/26px {FONT};">'
        + "<br>\n".join(rows)
        + "</p>"
    )
