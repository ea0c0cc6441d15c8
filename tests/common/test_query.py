import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from common.api.query import QueryParams, check_query, parse_include, parse_search
from common.errors import Invalid, Malformed

FIELDS = {"customer.name", "state", "meta."}
ID = uuid.UUID(int=7)
AT_10 = datetime(2026, 11, 20, 10, tzinfo=UTC)


def params(query, *known):
    return QueryParams(RequestFactory().get(f"/v2/things?{query}"), known)


@pytest.mark.parametrize(
    ("query", "getter", "arguments", "value"),
    [
        ("a=", "text", (), ""),
        ("", "text", (), None),
        ("a=true", "boolean", (), True),
        ("a=1", "boolean", (), True),
        ("a=false", "boolean", (), False),
        ("a=0", "boolean", (), False),
        ("", "boolean", (), None),
        ("a=asc", "choice", (("asc", "desc"),), "asc"),
        ("", "choice", (("asc", "desc"),), None),
        (f"a={ID}", "identifier", (), ID),
        ("", "identifier", (), None),
        ("a=2026-11-20T11:00:00%2B01:00", "bound", ("UTC", AT_10), AT_10),
        ("a=2026-11-20T11:00:00+01:00", "bound", ("UTC", AT_10), AT_10),
        ("a=2026-11-20+11:00:00", "bound", ("Europe/Berlin", AT_10), AT_10),
        ("a=2026-11-20+11:00", "bound", ("Europe/Berlin", AT_10), AT_10),
        ("", "bound", ("UTC", AT_10), None),
        ("a=now", "bound", ("UTC", AT_10), AT_10),
        ("a=1 hour", "bound", ("UTC", AT_10 - timedelta(hours=1)), AT_10),
        ("a=-1 day", "bound", ("UTC", AT_10 + timedelta(days=1)), AT_10),
        (
            "a=2026-11-20",
            "bound",
            ("Europe/Berlin", AT_10),
            AT_10.replace(hour=0) - timedelta(hours=1),
        ),
        (
            "a=2026-09-06",
            "bound",
            ("America/Santiago", AT_10),
            datetime(2026, 9, 6, 4, tzinfo=UTC),
        ),  # a midnight that the zone skips
    ],
)
def test_getters_of_parameters(query, getter, arguments, value):
    assert getattr(params(query, "a"), getter)("a", *arguments) == value


@pytest.mark.parametrize(
    ("query", "getter", "arguments", "message"),
    [
        ("a=yes", "boolean", (), "Must be one of true, 1, false, 0."),
        ("a=up", "choice", (("asc", "desc"),), "Must be one of asc, desc."),
        ("a=7", "identifier", (), "Must be a UUID."),
        ("a=2026", "bound", ("UTC", AT_10),
         "Must be a date, a date and time such as 2026-11-20T10:30:00+01:00, `now`, or relative to"
         " now such as -2 days."),
        ("a=2026-11", "bound", ("UTC", AT_10),
         "Must be a date and time such as 2026-11-20T10:30:00+01:00."),
    ],
)  # fmt: skip
def test_getters_refuse(query, getter, arguments, message):
    with pytest.raises(Invalid) as refusal:
        getattr(params(query, "a"), getter)("a", *arguments)

    assert refusal.value.fields == {"errors": {"a": [message]}}


def test_unknown_and_repeated_parameters_are_refused():
    with pytest.raises(Invalid) as refusal:
        params("a=1&b=1&c=2&a=3&b=4", "a", "c")

    assert refusal.value.fields == {
        "errors": {"a": ["Is given 2 times."], "b": ["Is not a known query parameter."]}
    }


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("a=%00", "The query string contains a NUL character."),
        ("%00=a", "The query string contains a NUL character."),
        ("a=%FF", "The query string is not valid UTF-8."),
        ("a=%ED%A0%80", "The query string is not valid UTF-8."),
        ("a=%C3&b=%A9", "The query string is not valid UTF-8."),
        ("a=\xff", "The query string is not valid UTF-8."),
    ],
)
def test_malformed_query_is_refused(query, message):
    request = RequestFactory().get("/v2/things")
    request.META["QUERY_STRING"] = query

    with pytest.raises(Malformed) as refusal:
        check_query(request)

    assert refusal.value.message == message


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        (";", []),
        ("state:x", [("state", "x", False, False)]),
        ("state:x;customer.name:y;",
         [("state", "x", False, False), ("customer.name", "y", False, False)]),
        ("customer.name:*Ann*", [("customer.name", "Ann", True, True)]),
        ("customer.name:Ann*", [("customer.name", "Ann", False, True)]),
        ("customer.name:A*n", [("customer.name", "A*n", False, False)]),
        ("customer.name:*", [("customer.name", "", True, False)]),
        (r"customer.name:Ann\*", [("customer.name", "Ann*", False, False)]),
        (r"customer.name:Ann\\*", [("customer.name", "Ann\\", False, True)]),
        (r"customer.name:\*\;\\;state:", [("customer.name", "*;\\", False, False),
                                          ("state", "", False, False)]),
        (r"customer.name:a\b", [("customer.name", r"a\b", False, False)]),
        ("customer.name:a\\", [("customer.name", "a\\", False, False)]),
        ("meta.a.b:c:d", [("meta.a.b", "c:d", False, False)]),
    ],
)  # fmt: skip
def test_parse_search(text, terms):
    assert parse_search(text, FIELDS) == terms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state", "Must be written as field:value;field:value."),
        ("name:x", "name can't be searched."),
        ("meta:x", "meta can't be searched."),
        ("meta.:x", "meta. can't be searched."),
        (":x", " can't be searched."),
        (" state:x", " state can't be searched."),
        ("state:x;" * 21, "Must have at most 20 terms."),
    ],
)
def test_parse_search_refuses(text, message):
    with pytest.raises(Invalid) as refusal:
        parse_search(text, FIELDS)

    assert refusal.value.fields == {"errors": {"search": [message]}}


@given(st.lists(st.text(max_size=8), max_size=20))
def test_escaped_values_round_trip(values):
    text = ";".join("state:" + escape(value) for value in values)

    assert parse_search(text, FIELDS) == [("state", value, False, False) for value in values]


def escape(value):
    return value.replace("\\", "\\\\").replace(";", "\\;").replace("*", "\\*")


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), ("a", ("a",)), ("a,b.c", ("a", "b.c")), ("b.c, a,a,", ("b.c", "a"))],
)
def test_parse_include(text, names):
    assert parse_include(text, {"a", "b.c"}) == names


@pytest.mark.parametrize("text", ["b", "a,b.d", "A", "a\n", "\t"])
def test_parse_include_refuses(text):
    with pytest.raises(Invalid) as refusal:
        parse_include(text, {"a", "b.c"})

    unknown = text.removeprefix("a,")
    assert refusal.value.fields == {"errors": {"include": [f"{unknown} can't be included."]}}
