"""Render JSON, and check whether the client accepts it."""

from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer

# The most specific matching range applies (RFC 9110, 12.5.1).
RANGES = ("application/json", "application/*", "*/*")


def render_json(data: Any) -> bytes:
    """Render plain values and UUIDs as JSON; datetimes must be formatted before, in their zone."""
    return orjson.dumps(data, option=orjson.OPT_PASSTHROUGH_DATETIME)


class JSONRenderer(BaseRenderer):
    """`render_json` as DRF's renderer; None is no body."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return b"" if data is None else render_json(data)


def accepts_json(accept: str) -> bool:
    """Return whether an Accept header allows application/json; an empty one allows everything.

    >>> accepts_json("text/html, */*;q=0.1"), accepts_json("application/json;q=0, */*")
    (True, False)
    """
    if not accept.strip() or accept in RANGES:
        return True
    qualities = dict(media_quality(part) for part in accept.lower().split(","))
    for media_range in RANGES:
        if media_range in qualities:
            return qualities[media_range] > 0
    return False


def media_quality(part: str) -> tuple[str, float]:
    """Parse one element of an Accept header: (media range, its q; 1 if q is invalid)."""
    media_range, *parameters = (piece.strip() for piece in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return media_range, parse_quality(value)
    return media_range, 1.0


def parse_quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
