"""How much one availability query may compute. These limits are in the API's description."""

from collections.abc import Mapping
from typing import Any

from availability.core.constraints import count_windows
from availability.core.zones import DAY
from availability.search.availability_query import AvailabilityQuery
from common.errors import Invalid

# Constraints in a request of a public caller.
MAX_PUBLIC_RULES = 20
# Days that a public caller may search at once: a month whatever the project is, else as many as the
# resources together may have. 17,500 take about 0.1 s.
MONTH = 35
MAX_PUBLIC_DAYS = 17_500
# Windows of the request's rules times resources; to expand a rule for a time zone takes as long as
# to apply it to ten of them. 300,000 take about 0.1 s.
MAX_RULE_WORK = 300_000
ZONE_IN_RESOURCES = 10


def check_number_of_rules(body: Any, *names: str) -> None:
    """Raise Invalid if a public caller sends too many rules in the body's lists of these names.

    Call it before the rules are parsed: one with COUNT takes milliseconds.
    """
    given = body if isinstance(body, Mapping) else {}
    left = MAX_PUBLIC_RULES
    for name in names:
        left -= _number_of_rules(given.get(name))
        if left < 0:
            text = f"At most {MAX_PUBLIC_RULES} constraints with a widget key."
            raise Invalid.at(name, text)


def _number_of_rules(given: Any) -> int:
    """Return the length of a list, or of both lists of the older filters."""
    lists = [given.get("or"), given.get("and")] if isinstance(given, Mapping) else [given]
    return sum(len(rules) for rules in lists if isinstance(rules, list))


def check_cost(query: AvailabilityQuery) -> None:
    """Raise Invalid for a query that would take too long: on `to` for the range of a public caller,
    on `constraints` for the rules of the request.
    """
    if not query.resources:
        return
    most = public_days(len(query.resources))
    longest = max(end - start for start, end in query.spans.values())
    if query.bounds and longest // DAY > most:
        text = f"At most {most} days at once for so many resources: request a shorter range."
        raise Invalid.at("to", text)
    resources = len(query.resources) + ZONE_IN_RESOURCES * len(query.spans)
    windows = count_windows(query.terms.extra, *query.whole_span)
    if any(query.terms.extra) and windows * resources > MAX_RULE_WORK:
        text = (
            "Repeat too often for so many resources: send fewer constraints, or request a shorter"
            " range."
        )
        raise Invalid.at("constraints", text)


def public_days(resources: int) -> int:
    """Return how many days a public caller may search at once."""
    return min(366, max(MONTH, MAX_PUBLIC_DAYS // max(1, resources)))
