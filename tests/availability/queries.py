"""Questions about time, and their answers in a form that can be read and compared whole."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.world import Answer, Caller

MONDAY = "2026-11-23"
MORNING = {"from": f"{MONDAY}T09:00:00Z", "to": f"{MONDAY}T12:00:00Z"}
UNKNOWN = "0190a5b8-0000-7000-8000-00000000000f"


def ask(caller: Caller, *resource_ids: str, **given: Any) -> Answer:
    """POST /availability for these resources from 09:00 to 12:00, unless the body says
    otherwise."""
    return caller.post("/availability", {"resources": list(resource_ids), **MORNING, **given})


def open_hours(start: Any, end: Any) -> dict[str, Any]:
    """Keys of a resource or project that is open from start to end each day."""
    return {"availability_constraints": [{"allow_hours": {"start": start, "end": end}}]}


def refusal(**errors: str) -> dict[str, Any]:
    """The whole body of a 422 but its request id; `__` in a key stands for a dot."""
    paths = {path.replace("__", "."): [text] for path, text in errors.items()}
    path, (text,) = next(iter(paths.items()))
    return {"error": f"{path}: {text}", "code": "invalid", "errors": paths}


def line(span: Mapping[str, Any]) -> str:
    """`2026-11-23 09:00-10:00 +00:00 Ada, Bob`; where the offset changes or midnight is passed,
    `2026-03-29 01:30+01:00 to 2026-03-29 03:30+02:00 Ada`. Without resources: no names."""
    start, end = _short(span["start"]), _short(span["end"])
    names = ", ".join(resource["name"] for resource in span.get("resources", ()))
    day, offset = start[:11], start[-6:]
    if end.startswith(day) and end.endswith(offset):
        text = f"{start[:-6]}-{end[11:-6]} {offset}"
    else:
        text = f"{start} to {end}"
    return f"{text} {names}".strip()


def _short(instant: str) -> str:
    """`2026-11-23 09:00+00:00`, the seconds only where they are not 0."""
    return f"{instant[:10]} {instant[11:19].removesuffix(':00')}{instant[19:]}"


def lines(answer: Answer) -> list[str]:
    """The whole answer, a line for each slot or stretch."""
    assert set(answer.json) == {"data"}, answer.json
    return list(map(line, answer.data))


def starts(answer: Answer) -> list[str]:
    """The starts of all slots, `2026-03-29 01:30+01:00`: enough where all last equally long."""
    return [_short(slot["start"]) for slot in answer.data]


def segment_lines(segments: Iterable[Mapping[str, Any]]) -> list[str]:
    """Each segment of an explanation with the texts of its reasons, or `free`."""
    return [
        f"{line(segment)}: " + (" ".join(one["text"] for one in segment["reasons"]) or "free")
        for segment in segments
    ]
