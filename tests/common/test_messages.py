"""Messages: their English, their column, and errors of DRF."""

import copy

import orjson
import pytest
from django.db import connection
from rest_framework import serializers

from common.db.message_field import MessageField
from common.messages import Message, cut_message, find_message, join_messages

RETURNED = Message("The server returned %(status)s.", status=500)
REFUSED = Message("The customer: %(reason)s.", reason=Message("Refused (%(code)s)", code="5.1"))


def test_message_is_its_english() -> None:
    assert orjson.dumps([RETURNED, REFUSED]) == (
        b'["The server returned 500.","The customer: Refused (5.1)."]'
    )


def test_copy_keeps_values() -> None:
    copied = copy.deepcopy(REFUSED)

    assert (str(copied), copied.text, copied.values) == (
        "The customer: Refused (5.1).",
        "The customer: %(reason)s.",
        {"reason": "Refused (5.1)"},
    )


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ("", ""),
        (Message("100 % sure"), "100 % sure"),
        ("[a stranger's]", '["[a stranger\'s]",{}]'),
        (RETURNED, '["The server returned %(status)s.",{"status":500}]'),
        (REFUSED, '["The customer: %(reason)s.",{"reason":["Refused (%(code)s)",{"code":"5.1"}]}]'),
    ],
)
def test_column_keeps_text_and_values(given: str, column: str) -> None:
    field = MessageField()

    stored = field.get_prep_value(given)
    found = field.from_db_value(stored, None, connection)

    assert (stored, type(stored), found) == (column, str, given)
    assert getattr(found, "values", {}) == getattr(given, "values", {})


@pytest.mark.parametrize(
    "column", ["[", "[]", '["%(a)s",{"b":1}]', '["a",5]', '[5,{"a":1}]', '["%d",{"a":1}]']
)
def test_column_written_by_hand_is_read_as_text(column: str) -> None:
    assert MessageField().from_db_value(column, None, connection) == column


def test_error_of_drf_keeps_its_message() -> None:
    class Inner(serializers.Serializer):
        def validate(self, attrs: object) -> object:
            raise serializers.ValidationError({"name": [REFUSED]})

    class Outer(serializers.Serializer):
        inner = Inner()

    outer = Outer(data={"inner": {}})

    assert not outer.is_valid()
    (fault,) = outer.errors["inner"]["name"]
    assert find_message(fault) is REFUSED


def test_exception_keeps_its_message() -> None:
    assert find_message(ValueError(REFUSED)) is REFUSED
    assert find_message(ValueError("Odd.")) == "Odd."


def test_joined_messages() -> None:
    joined = join_messages(", ", [RETURNED, "100 % sure"])

    assert joined == "The server returned 500., 100 % sure"
    assert joined.values["part0"] is RETURNED


def test_long_message_becomes_its_english() -> None:
    assert cut_message(RETURNED, 24) is RETURNED
    assert cut_message(RETURNED, 23) == "The server returned 500"
