import uuid
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from rest_framework.serializers import ValidationError

from common.api.fields import (
    BoundedIntegerField,
    DurationField,
    EmailField,
    IdField,
    InstantField,
    ListOf,
    MetaField,
    OneLineField,
    StrictBooleanField,
    TextField,
    UrlField,
    ZoneField,
)
from common.api.serializers import ObjectSerializer
from common.errors import flatten_errors

ONE_LINE = OneLineField(max_length=5)
TEXT = TextField(max_length=20)
SMALL = BoundedIntegerField(0, 100)
DIGITS = BoundedIntegerField(0, 100, allow_digits=True)
LENGTH = DurationField(least=60, most=3600)
BREAKS = "May not contain control characters or line breaks."
NO_EMAIL = "Must be an e-mail address."
NO_URL = "Must be an http or https address."
NO_ZONE = "Must be a time zone such as Europe/Berlin."


@pytest.mark.parametrize(
    ("field", "sent", "value"),
    [
        (ONE_LINE, " é 😀 ", " é 😀 "),
        (OneLineField(5, allow_blank=True), "", ""),
        (TEXT, "a\r\n\tb", "a\r\n\tb"),
        (EmailField(), "Ann.O'Neil+x@mail.example.com", "Ann.O'Neil+x@mail.example.com"),
        (UrlField(), "https://example.com:8443/a?b=c#d", "https://example.com:8443/a?b=c#d"),
        (UrlField(), "http://[::1]/", "http://[::1]/"),
        (UrlField(allow_blank=True), "", ""),
        (ZoneField(), "Europe/Berlin", "Europe/Berlin"),
        (InstantField(), "2026-11-20T10:30:00+01:00", datetime(2026, 11, 20, 9, 30, tzinfo=UTC)),
        (InstantField(), "2026-11-20 10:30:00", datetime(2026, 11, 20, 10, 30, tzinfo=UTC)),
        (LENGTH, "30 Minutes", "30 Minutes"),
        (DurationField(), 0, "0"),
        (SMALL, 100, 100),
        (DIGITS, "30", 30),
        (StrictBooleanField(), False, False),
        (MetaField(), {"a": [None]}, {"a": [None]}),
        (MetaField(), [], {}),
        (ListOf(BoundedIntegerField(0, 100), 2), [1, 2], [1, 2]),
        (IdField(), "0190A5B8-0000-7000-8000-00000000000F",
         uuid.UUID("0190a5b8-0000-7000-8000-00000000000f")),
    ],
)  # fmt: skip
def test_accepted_values_of_each_field(field, sent, value):
    assert field.run_validation(sent) == value


@pytest.mark.parametrize(
    ("field", "sent", "messages"),
    [
        (ONE_LINE, 5, ["Must be a string."]),
        (ONE_LINE, True, ["Must be a string."]),
        (ONE_LINE, None, ["This field may not be null."]),
        (ONE_LINE, "", ["This field may not be blank."]),
        (ONE_LINE, "abcdef", ["Ensure this field has no more than 5 characters."]),
        *[(ONE_LINE, f"a{c}b", [BREAKS]) for c in "\0\n\r\t\x1b\x7f\x85\u2028\u2029"],
        *[(TEXT, f"a{c}b", ["May not contain control characters."]) for c in "\0\x0b\x1b\x85"],
        (EmailField(), "ann", [NO_EMAIL]),
        (EmailField(), "a@b.example\n", [BREAKS]),
        (EmailField(), "a" * 250 + "@b.example",
         ["Ensure this field has no more than 254 characters.", NO_EMAIL]),
        (UrlField(), "javascript:alert(1)", [NO_URL]),
        (UrlField(), "ftp://example.com/", [NO_URL]),
        (UrlField(), "//example.com/", [NO_URL]),
        (UrlField(), "https://", [NO_URL]),
        (UrlField(), "https://user:pw@example.com/", [NO_URL]),
        (UrlField(), "https://example.com/a b", [NO_URL]),
        (UrlField(), "https://example.com\\@evil.example/", [NO_URL]),
        (UrlField(), "https://example.com:99999/", [NO_URL]),
        (UrlField(), "https://[::1/", [NO_URL]),
        (UrlField(), "https://example.com/\n", [BREAKS]),
        (ZoneField(), "Mars/Olympus", [NO_ZONE]),
        (ZoneField(), "../../etc/passwd", [NO_ZONE]),
        (ZoneField(), "localtime", [NO_ZONE]),
        (InstantField(), 1790000000, ["Must be a string."]),
        (InstantField(), "tomorrow",
         ["Must be a date and time such as 2026-11-20T10:30:00+01:00."]),
        (LENGTH, "59 secs", ["Must be from 1 minute to 1 hour."]),
        (LENGTH, "1 month", ["Months are not allowed here."]),
        (LENGTH, 30, ["Must be a duration such as '30 minutes' or '3 days 2 weeks'."]),
        *[(SMALL, v, ["Must be an integer."]) for v in (True, 1.0, "1", [], {})],
        (SMALL, 101, ["Ensure this value is less than or equal to 100."]),
        (SMALL, -1, ["Ensure this value is greater than or equal to 0."]),
        *[(DIGITS, v, ["Must be an integer."]) for v in ("-1", "١", "", "1.0", "9" * 5000)],
        *[(StrictBooleanField(), v, ["Must be true or false."]) for v in (1, 0, "true", "", [])],
        (MetaField(), "a", ["Must be an object."]),
        (MetaField(), [1], ["Must be an object."]),
        (MetaField(), {str(n): n for n in range(51)}, ["Must have at most 50 keys."]),
        (MetaField(), {"a": "x" * 16 * 1024}, ["Must be at most 16 kB."]),
        (ListOf(BoundedIntegerField(0, 100), 2), [1, 2, "x"], ["Must have at most 2 items."]),
        (ListOf(BoundedIntegerField(0, 100), 2), {"0": 1}, ["Must be a list."]),
        *[(IdField(), v, ["Must be a UUID."])
          for v in (5, "5", "0190a5b80000700080000000000000ff", "x" * 36,
                    "{0190a5b8-0000-7000-8000-00000000000f}",
                    "0190a5b8-0000-7000-8000-00000000000f\n")],
    ],
)  # fmt: skip
def test_wrong_values_of_each_field_are_refused(field, sent, messages):
    with pytest.raises(ValidationError) as error:
        field.run_validation(sent)

    assert error.value.detail == messages


class Reminder(ObjectSerializer):
    minutes = BoundedIntegerField(0, 60)


class Event(ObjectSerializer):
    start = InstantField()
    reminders = ListOf(Reminder(), 3, required=False)
    options = Reminder(required=False)


def test_instants_use_the_zone_of_the_context():
    start, context = datetime(2026, 11, 20, 9, 30, tzinfo=UTC), {"zone": "Europe/Berlin"}
    event = Event(data={"start": "2026-11-20 10:30:00"}, context=context)
    event.is_valid(raise_exception=True)

    assert event.validated_data == {"start": start}
    assert Event(SimpleNamespace(start=start, reminders=[], options={}), context=context).data == {
        "start": "2026-11-20T10:30:00+01:00",
        "reminders": [],
        "options": {},
    }


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ([], {"start": ["This field is required."]}),
        ([1], {"body": ["Must be an object."]}),
        ("x", {"body": ["Must be an object."]}),
        (None, {"body": ["No data provided"]}),
        (
            {"start": 1, "options": [], "reminders": [{"minutes": 1}, {"minutes": "x"}, 7]},
            {
                "start": ["Must be a string."],
                "options.minutes": ["This field is required."],
                "reminders.1.minutes": ["Must be an integer."],
                "reminders.2": ["Must be an object."],
            },
        ),
        (
            {"start": "2026-11-20T10:30:00Z", "options": 5, "unknown": 1},
            {"options": ["Must be an object."]},
        ),
    ],
)
def test_object_errors_have_their_path(body, errors):
    with pytest.raises(ValidationError) as error:
        Event(data=body).is_valid(raise_exception=True)

    assert flatten_errors(error.value.detail) == errors
