"""Reading the JSON texts of providers."""

import json
from typing import Any

from common.ical.occurrences import UnreadableCalendar

Json = dict[str, Any]


def read_json(text: str) -> Json:
    """Return the object of a text. Raises UnreadableCalendar."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UnreadableCalendar("The text is not JSON.") from error
    if not isinstance(value, dict):
        raise UnreadableCalendar("The text is not a JSON object.")
    return value


def write_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
