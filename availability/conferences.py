"""Links of video calls: a project's setting `conference`, and the links that need no calendar."""

import re
import secrets
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from availability.models import MAX_CONFERENCE_URL, Calendar, Project, Resource
from common.api.fields import NOT_IN_URL, is_web_address

MEET, TEAMS, JITSI, TEMPLATE = PROVIDERS = ("meet", "teams", "jitsi", "template")
# The kind of connected calendar that makes the link, with the booking's event.
CALENDAR_PROVIDERS: Mapping[str, str] = {MEET: "google", TEAMS: "microsoft"}
MAX_TEMPLATE = 400  # leaves space for the id
JITSI_SERVER = "https://meet.jit.si"
BOOKING_ID = "{booking_id}"
BRACES = re.compile(r"[{}]")


def is_link(text: str) -> bool:
    """Whether the text is an https address of at most MAX_CONFERENCE_URL characters."""
    is_clean = not NOT_IN_URL.search(text) and len(text) <= MAX_CONFERENCE_URL
    return is_clean and text.startswith("https://") and is_web_address(text)


def is_template(text: str) -> bool:
    """Whether the text is an https address with `{booking_id}`, and no other braces, behind its
    host.

    >>> is_template("https://video.example/{booking_id}")
    True
    >>> is_template("https://{booking_id}.video.example/")
    False
    """
    return BOOKING_ID in text and _is_address(text)


def is_jitsi_template(text: str) -> bool:
    """Whether the text is a template, or the address of a server, to which the room is added."""
    if BOOKING_ID in text or not _is_address(text):
        return is_template(text)
    parts = urlsplit(text)
    return not (parts.query or parts.fragment)


def _is_address(text: str) -> bool:
    filled = text.replace(BOOKING_ID, "x")
    if BRACES.search(filled) or not is_link(filled):
        return False
    return BOOKING_ID not in urlsplit(text).netloc


def conference_provider(settings: Mapping[str, Any]) -> str:
    """Return the provider in a project's settings; "" without video calls."""
    conference = settings.get("conference")
    provider = conference.get("provider") if isinstance(conference, dict) else None
    return provider if provider in PROVIDERS else ""


def resources_without_links(project: Project) -> list[str]:
    """Return the names of the project's resources without a calendar that makes the links; [] if
    no calendar has to.
    """
    made_by = CALENDAR_PROVIDERS.get(conference_provider(project.settings))
    if made_by is None:
        return []
    with_calendar = Calendar.objects.filter(
        provider=made_by,
        provider_access=Calendar.WRITER,
        provider_primary=True,
        deleted_at=None,
    )
    resources = Resource.objects.filter(project_resources__project=project, deleted_at=None)
    others = resources.exclude(id__in=with_calendar.values("resource"))
    return list(others.order_by("project_resources__position").values_list("name", flat=True))


def new_link(settings: Mapping[str, Any], booking_id: uuid.UUID) -> str:
    """Return the link of a new booking; "" if a connected calendar makes it.

    Everyone with the link can enter a room of Jitsi. Its name is therefore random: the id of a
    booking is no secret, as it is part of many addresses and records.
    """
    provider = conference_provider(settings)
    template = settings["conference"].get("template") or "" if provider else ""
    if provider == TEMPLATE:
        return template.replace(BOOKING_ID, str(booking_id))
    if provider == JITSI:
        server = template or JITSI_SERVER
        if BOOKING_ID not in server:
            server = f"{server.rstrip('/')}/{BOOKING_ID}"
        return server.replace(BOOKING_ID, secrets.token_hex(16))
    return ""
