"""Leads Schemathesis past the door: half of what it makes up gets real ids, zones and times.

Loaded by its command line (SCHEMATHESIS_HOOKS); what there is stands in SCHEMATHESIS_WORLD, a JSON
object of lists by the name of the parameter. What is wrong on purpose is left as it is.
"""

import json
import os
import zlib
from typing import Any
from urllib.parse import urlencode

import schemathesis
from schemathesis.core import NotSet
from schemathesis.core.jsonschema import make_validator_for
from schemathesis.core.parameters import ParameterLocation

WORLD: dict[str, list[str]] = json.loads(os.environ["SCHEMATHESIS_WORLD"])
LISTS = {"resources": "resource_id", "resource_ids": "resource_id", "calendar_ids": "calendar_id"}
MAX_QUERY = 7500  # gunicorn.conf.py: a line with method and path is a little longer
SETTINGS_OF_TYPE = {
    "email": {"recipient", "subject"},
    "webhook": {"url", "method", "expected_response_code"},
}
ALL_SETTINGS = set().union(*SETTINGS_OF_TYPE.values())
ZONES = ("Europe/Berlin", "America/Los_Angeles", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC")


def choose(number: int, choices: Any) -> Any:
    return choices[number % len(choices)]


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """The same case is always led the same way, so that a failure can be shrunk and replayed."""
    number = zlib.crc32(repr((case.path_parameters, case.query, case.body)).encode())
    if not is_wrong(case, ParameterLocation.HEADER):
        fill_in_headers(case.headers, number)
    if not is_wrong(case, ParameterLocation.PATH):
        fill_in_path(case, number)
    if not is_wrong(case, ParameterLocation.BODY) and isinstance(case.body, dict):
        if "address" in case.body:
            # Refused at once: no made-up name is to be looked up.
            case.body["address"] = "https://127.0.0.1/calendar"
        if number % 4:
            case.body = fill_in_body(case.body, number)


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Leaves out addresses that no web server reads to their end, and bodies that are wrong by the
    description and right by the contract.

    [] stands for {} wherever an object is wanted (clients that can't write the latter); a schema
    that said so would give every generated client two types for one thing. A bulk request answers
    200 with a line for each of its items, also for those that are wrong. Of an event notification's
    settings those of the other type are ignored, however wrong they are; one schema describes both.
    An empty body means {}, so it is wrong only if {} is.
    """
    if len(urlencode(case.query or {}, doseq=True)) > MAX_QUERY:
        return False
    if not is_wrong(case, ParameterLocation.BODY):
        return True
    if isinstance(case.body, NotSet):
        return not make_validator_for(case.operation.body[0].optimized_schema).is_valid({})
    is_bulk = case.path.endswith("/bulk") and isinstance(case.body, dict)
    if is_bulk and "bookings" in case.body:
        return False
    return not (has_empty_array(case.body) or has_ignored_settings(case.body))


def has_empty_array(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_empty_array, value.values()))
    return isinstance(value, list) and (not value or any(map(has_empty_array, value)))


def has_ignored_settings(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(has_ignored_settings, value))
    if not isinstance(value, dict):
        return False
    settings, kind = value.get("settings"), value.get("type")
    if isinstance(settings, dict) and isinstance(kind, str) and kind in SETTINGS_OF_TYPE:
        return bool(settings.keys() & ALL_SETTINGS - SETTINGS_OF_TYPE[kind])
    return any(map(has_ignored_settings, value.values()))


def is_wrong(case: Any, place: ParameterLocation) -> bool:
    return case.meta is not None and case.meta.is_negative_at(place)


def fill_in_headers(headers: Any, number: int) -> None:
    if "Service-App" in headers:
        headers["Service-App"] = choose(number, WORLD["slug"])
    if "Service-Timezone" in headers:
        headers["Service-Timezone"] = choose(number, ZONES)


def fill_in_path(case: Any, number: int) -> None:
    """What is deleted is what Schemathesis has made itself: the world lasts."""
    for name in case.path_parameters:
        if name in WORLD and number % 2 and case.method != "DELETE":
            case.path_parameters[name] = choose(number, WORLD[name])


def fill_in_body(value: Any, number: int) -> Any:
    """A body with real ids, zones and times in the places that take them."""
    if isinstance(value, list):
        return [fill_in_body(one, number) for one in value]
    if not isinstance(value, dict):
        return value
    led = {key: fill_in_body(one, number) for key, one in value.items()}
    for key in led.keys() & {"resource_id", "calendar_id", "project_id", "reservation_id"}:
        # All of one number belong together.
        led[key] = choose(number, WORLD[key])
    for key in led.keys() & LISTS.keys():
        if not isinstance(led[key], list):
            continue  # a booking's `resources` are an object
        led[key] = sorted({choose(number + i, WORLD[LISTS[key]]) for i in range(number % 3 + 1)})
    for key in led.keys() & {"timezone", "output_timezone", "default_timezone"}:
        led[key] = choose(number, ZONES)
    if isinstance(led.get("start"), str) and isinstance(led.get("end"), str):
        day = f"{2030 + number % 5}-{number % 12 + 1:02}-{number % 28 + 1:02}"
        led["start"] = f"{day} {number % 22:02}:{number % 60:02}:00"
        led["end"] = f"{day} {number % 22 + 1:02}:{number % 60:02}:00"
    return led
