"""How slots, days and explanations are written. Slots go out as ready-made bytes: the hot path."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import orjson

from availability.core.constraints import render_constraint
from availability.core.explain import Reason
from availability.core.slots import Slot
from availability.core.zones import DAY, offset_segments
from availability.search import Bookable, Explanation, out_of_step_text
from scheduling.api.instants import format_stamp

_EPOCH = date(1970, 1, 1)


class _Times(dict):
    """Second of a day -> "T09:30:00", written when it is first asked for."""

    def __missing__(self, second: int) -> str:
        hours, rest = divmod(second, 3600)
        text = self[second] = f"T{hours:02}:{rest // 60:02}:{rest % 60:02}"
        return text


_TIMES = _Times()


def _offset_text(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"


def write_instants(instants: Iterable[int], zone: str) -> dict[int, str]:
    """Epoch seconds -> RFC 3339 text in the zone, as `format_instant` writes it.

    Date and offset are worked out once for each day and change of offset, not for each instant.
    """
    ordered = sorted(instants)
    if not ordered:
        return {}
    texts: dict[int, str] = {}
    segments = offset_segments(zone, ordered[0], ordered[-1] + 1)
    segment, fence = -1, ordered[0]
    for instant in ordered:
        if instant >= fence:
            while segment < 0 or instant >= segments[segment][1]:
                segment += 1
            _, end, offset = segments[segment]
            # RFC 3339 has no seconds in an offset: the reading moves with it.
            minutes = offset // 60
            day = (instant + minutes * 60) // DAY
            midnight = day * DAY - minutes * 60
            fence = min(end, midnight + DAY)
            date_text = (_EPOCH + timedelta(days=day)).isoformat()
            tail = _offset_text(minutes)
        texts[instant] = f"{date_text}{_TIMES[instant - midnight]}{tail}"
    return texts


def bounds_of(spans: Collection[Sequence[Any]]) -> set[int]:
    """All starts and ends, each once."""
    starts_and_ends = {span[0] for span in spans}
    starts_and_ends.update(span[1] for span in spans)
    return starts_and_ends


def resource_summary(resource: Bookable) -> dict[str, str]:
    return {"id": str(resource.id), "name": resource.name, "timezone": resource.zone}


def write_slots(
    slots: Sequence[Slot], zone: str, warnings: Sequence[Mapping[str, Any]] = ()
) -> bytes:
    """`{"data": [{"start", "end", "resources"}]}`; every resource is rendered once. `warnings`
    stand beside `data` where there are some."""
    texts = write_instants(bounds_of(slots), zone)
    summaries: dict[tuple, str] = {}
    written = []
    for start, end, resources in slots:
        summary = summaries.get(resources)
        if summary is None:
            summary = summaries[resources] = orjson.dumps(
                [resource_summary(resource) for resource in resources]
            ).decode()
        written.append(f'{{"start":"{texts[start]}","end":"{texts[end]}","resources":{summary}}}')
    tail = f',"warnings":{orjson.dumps(warnings).decode()}' if warnings else ""
    return f'{{"data":[{",".join(written)}]{tail}}}'.encode()


def with_warnings(
    records: Sequence[Any], warnings: Sequence[Mapping[str, Any]]
) -> dict[str, Sequence[Any]]:
    """`{"data": records}`, and the warnings where there are some."""
    return {"data": records, "warnings": warnings} if warnings else {"data": records}


def warning_records(resources: Iterable[Bookable], zone: str) -> list[dict[str, Any]]:
    """What an answer about these resources has to say of their calendars."""
    return [
        {
            "type": "calendar_out_of_step",
            "resource_id": str(resource.id),
            "calendar_id": str(calendar.id),
            "name": calendar.name,
            "synced_at": calendar.synced_at and format_stamp(calendar.synced_at),
            "text": out_of_step_text(calendar, zone),
        }
        for resource in resources
        for calendar in resource.out_of_step
    ]


def days_of(slots: Sequence[Slot], zone: str) -> dict[str, list[Slot]]:
    """The slots by the local date of their start, in order."""
    texts = write_instants({slot[0] for slot in slots}, zone)
    days: dict[str, list[Slot]] = {}
    for slot in slots:
        days.setdefault(texts[slot[0]][:10], []).append(slot)
    return days


def date_records(slots: Sequence[Slot], zone: str) -> list[dict[str, Any]]:
    """Each date with a slot, and the resources that have one on it."""
    return [
        {
            "date": day,
            "resources": list(dict.fromkeys(str(one.id) for slot in found for one in slot[2])),
        }
        for day, found in days_of(slots, zone).items()
    ]


def count_records(slots: Sequence[Slot], zone: str) -> list[dict[str, Any]]:
    return [{"date": day, "count": len(found)} for day, found in days_of(slots, zone).items()]


def unavailable_records(
    spans: Sequence[tuple[int, int, Bookable]], zone: str
) -> list[dict[str, Any]]:
    texts = write_instants(bounds_of(spans), zone)
    return [
        {"start": texts[start], "end": texts[end], "resources": [resource_summary(resource)]}
        for start, end, resource in spans
    ]


def reason_record(reason: Reason) -> dict[str, Any]:
    """Type, source and text; the constraint behind it (several that unite: `constraints`), the
    event, the hold or the calendar."""
    record: dict[str, Any] = {"type": reason.type, "source": reason.source}
    rules = [render_constraint(rule) for rule in reason.rules]
    if len(rules) == 1:
        record["constraint"] = rules[0]
    elif rules:
        record["constraints"] = rules
    if reason.event_id:
        record["event_id"] = str(reason.event_id)
    if reason.reservation_id:
        record["reservation_id"] = str(reason.reservation_id)
    if reason.calendar_id:
        record["calendar_id"] = str(reason.calendar_id)
    return record | {"text": reason.text}


def public_reason_record(reason: Reason) -> dict[str, Any]:
    """What strangers may know of it."""
    return {"type": reason.type, "text": reason.public_text or reason.text}


def explanation_record(explanation: Explanation, zone: str) -> dict[str, Any]:
    texts = write_instants(bounds_of(explanation.segments), zone)
    record: dict[str, Any] = {
        "resource": resource_summary(explanation.resource),
        "never_open": explanation.never_open,
        "segments": [
            {
                "start": texts[segment.start],
                "end": texts[segment.end],
                "available": segment.available,
                "reasons": [reason_record(reason) for reason in segment.reasons],
            }
            for segment in explanation.segments
        ],
    }
    if explanation.never_open:
        record["text"] = "No time in this range satisfies all rules together."
    return record
