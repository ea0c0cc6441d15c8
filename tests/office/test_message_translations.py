"""Messages of the services in the language of the page."""

import ast

import pytest
from django.utils import translation
from rest_framework import serializers

from common.messages import Message, join_messages
from office.base.message_translations import translate_message
from ops.office_texts import SERVICES, find_sentences
from tests.services import ROOT

RULE = Message("%(start)s to %(end)s every day", start="12:00", end="13:00")
BLOCKED = Message("Blocked by the project's rule: %(rule)s.", rule=RULE)


def first_arguments() -> list[ast.expr]:
    """What the services make messages of."""
    return [
        node.args[0]
        for package in SERVICES
        for file in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "Message"
    ]


def test_each_message_is_in_the_catalogue() -> None:
    """`test_each_translation_is_complete` finds those without a translation."""
    texts = {node.value for node in first_arguments() if isinstance(node, ast.Constant)}
    known = {sentence.id for sentence in find_sentences()}

    assert len(texts) > 130
    assert texts - known == set()


def test_no_message_is_made_of_a_formatted_text() -> None:
    """A text with its values filled in is in no catalogue: give the values to the message."""
    formatted = [
        ast.unparse(node)
        for node in first_arguments()
        if isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call) or ".format(" in ast.unparse(node)
    ]

    assert formatted == []


@pytest.mark.parametrize("text", ["Something else.", "100 % sure", "", "Is in the past."])
def test_text_of_strangers_is_unchanged(text: str) -> None:
    with translation.override("de"):
        assert translate_message(text) == text


@pytest.mark.parametrize(
    ("message", "english", "german"),
    [
        (Message("Is in the past."), "Is in the past.", "Liegt in der Vergangenheit."),
        (Message(""), "", ""),
        (Message("100 % sure"), "100 % sure", "100 % sure"),
        (
            Message("The server returned %(status)s.", status=500),
            "The server returned 500.",
            "Der Server hat mit 500 geantwortet.",
        ),
        (
            BLOCKED,
            "Blocked by the project's rule: 12:00 to 13:00 every day.",
            "Blockiert durch die Regel des Projekts: täglich 12:00 bis 13:00.",
        ),
        (
            join_messages(", ", [Message("Mondays"), "Lunch 100 %"]),
            "Mondays, Lunch 100 %",
            "montags, Lunch 100 %",
        ),
    ],
)
def test_message_in_each_language(message: Message, english: str, german: str) -> None:
    with translation.override("de"):
        assert (str(message), translate_message(message)) == (english, german)
    with translation.override("en"):
        assert translate_message(message) == english


def test_exception_with_message() -> None:
    with translation.override("de"):
        assert translate_message(ValueError(Message("Mondays"))) == "montags"


def test_error_of_nested_serializer() -> None:
    class Inner(serializers.Serializer):
        def validate(self, attrs: object) -> object:
            raise serializers.ValidationError({"name": [BLOCKED]})

    class Outer(serializers.Serializer):
        inner = Inner()

    outer = Outer(data={"inner": {}})

    assert not outer.is_valid()
    (fault,) = outer.errors["inner"]["name"]
    with translation.override("de"):
        assert fault == "Blocked by the project's rule: 12:00 to 13:00 every day."
        assert (
            translate_message(fault)
            == "Blockiert durch die Regel des Projekts: täglich 12:00 bis 13:00."
        )
