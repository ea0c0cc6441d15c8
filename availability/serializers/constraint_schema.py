"""The constraints of the API in the OpenAPI document (api.md section 7)."""

from collections.abc import Mapping

from availability.core.constraints import CONSTRAINT_NAMES, MAX_CATEGORIES, MAX_LABEL, MAX_WINDOWS
from availability.core.date_rules import MAX_DURATION
from common.api.fields import ONE_LINE, duration_schema
from common.openapi.component_registry import Json, register_component
from common.openapi.components import text_response

MAX_CONSTRAINTS = 200
_DAY_TIME = {
    "type": ["integer", "string"],
    "description": "A full hour as a number, or a time as text. 24 is midnight at the end of the"
    " day.",
    "minimum": 0,
    "maximum": 24,
    "pattern": "^([01]?[0-9]|2[0-3])(:[0-5][0-9])?$|^24(:00)?$",
    "examples": [9, "09:30"],
}
_DAY = text_response("Upper or lower case.", pattern="^[A-Za-z]+day$", examples=["Monday"])
_BOUND = text_response(
    "Wall-clock time, a date (its midnight), or an instant with its offset.",
    pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?"
    "(Z|[+-][0-9]{2}:?[0-9]{2})?)?$",
    examples=["2026-08-01 00:00:00"],
)
_TIMES = {"start": _DAY_TIME, "end": _DAY_TIME}
_RECURRENCE = {
    "start": text_response(
        "The wall-clock time of the first occurrence, or a date (its midnight).",
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2})?$",
        examples=["2026-12-01 14:00:00"],
    ),
    "duration": {**duration_schema(60, MAX_DURATION), "description": "At most 7 days."},
    "rrule": text_response(
        "RFC 5545, DAILY to YEARLY; COUNT and UNTIL may be absent.",
        maxLength=500,
        examples=["FREQ=WEEKLY;INTERVAL=2"],
    ),
}
_DATE = text_response(
    "A local date.", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples=["2026-12-24"]
)
_LABEL = {
    "name": text_response(
        "The rule's name in explanations.",
        maxLength=MAX_LABEL,
        pattern=ONE_LINE,
        examples=["Renovation"],
    )
}
# The required parameters of each constraint without its verb; the others have none.
_PARAMETERS: Mapping[str, Json] = {
    "hours": _TIMES,
    "day": {"day": _DAY},
    "day_and_time": {"day": _DAY, **_TIMES},
    "period": {"start": _BOUND, "end": _BOUND},
    "recurring": _RECURRENCE,
    "replace_day": {
        "date": _DATE,
        "windows": {
            "type": "array",
            "description": "The open hours of the date; none: closed.",
            "maxItems": MAX_WINDOWS,
            "items": {"type": "object", "required": ["start", "end"], "properties": _TIMES},
        },
    },
    "holidays": {
        "country": text_response(
            "ISO 3166-1, two letters.", pattern="^[A-Za-z]{2}$", examples=["DE"]
        )
    },
}
_OPTIONAL: Mapping[str, Json] = {
    "holidays": {
        "subdivision": text_response("A part of the country.", maxLength=40, examples=["BY"]),
        "categories": {
            "type": "array",
            "description": "Kinds of holidays. Absent: public ones.",
            "maxItems": MAX_CATEGORIES,
            "items": {"type": "string"},
            "examples": [["public"]],
        },
    }
}


def _constraint_parameters_schema(name: str) -> Json:
    noun = name if name in _PARAMETERS else name.split("_", 1)[1]
    parameters = _PARAMETERS.get(noun)
    if parameters is None:
        # Clients that can't write an empty object send an empty array.
        return {"type": ["object", "array"], "items": {}, "maxItems": 0, "properties": _LABEL}
    properties = {**parameters, **_OPTIONAL.get(noun, {}), **_LABEL}
    return {"type": "object", "required": list(parameters), "properties": properties}


CONSTRAINT = register_component(
    "schemas",
    "Constraint",
    {
        "type": "object",
        "description": "A rule for when time is open, on the wall clock of each resource: one"
        " key, the rule's name, with its parameters. Allow rules of the same kind in one list"
        " form a union (Monday, Tuesday). Different kinds and different lists form an"
        " intersection (weekdays, 9 to 17). Block rules apply last. Without rules, time is"
        " always open. If `start` is later than `end`, the rule runs over midnight. One list"
        " applies its rules in this order: weekly hours (allow and block rules of days and"
        " hours), plus `open_recurring`, less `block_holidays`; the windows of `replace_day` on"
        " its date; cut by `allow_period`; plus `open_period`; less `block_period` and"
        " `block_recurring`. A list that opens time and allows none is closed otherwise.",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {name: _constraint_parameters_schema(name) for name in CONSTRAINT_NAMES},
        "additionalProperties": False,
        "examples": [{"allow_day_and_time": {"day": "Monday", "start": 9, "end": "17:30"}}],
    },
)

CONSTRAINT_LIST: Json = {"type": "array", "maxItems": MAX_CONSTRAINTS, "items": CONSTRAINT}
