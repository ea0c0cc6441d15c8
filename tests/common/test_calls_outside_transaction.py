"""Questions that arise in a transaction, and are asked outside of it."""

from collections.abc import Collection
from typing import Any

import pytest
from django.db import connection, transaction

from apps_config.models import App
from common.db.calls_outside_transaction import (
    NeedsAnswer,
    merge_questions,
    resolve,
    with_calls_outside_transaction,
)


class Oracle:
    """Doubles what it is asked; notes what that was, and how many apps there were then."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[int], int]] = []

    def __call__(self, questions: Collection[int]) -> dict[int, int]:
        assert connection.savepoint_ids == []
        self.asked.append((list(questions), App.objects.count()))
        return {question: 2 * question for question in questions}


@pytest.fixture
def oracle(db: None) -> Oracle:
    return Oracle()


def write(slug: str) -> None:
    App.objects.create(slug=slug, name=slug)


def test_call_without_a_decorator_is_immediate(oracle: Oracle) -> None:
    assert resolve(oracle, [1, 2]) == {1: 2, 2: 4}
    assert resolve(oracle, [1]) == {1: 2}
    assert oracle.asked == [([1, 2], 0), ([1], 0)]


def test_transaction_is_rolled_back_and_repeated(oracle: Oracle) -> None:
    @with_calls_outside_transaction
    def make(slug: str) -> dict[int, int]:
        with transaction.atomic():
            write(slug)
            return resolve(oracle, [1, 2])

    assert make("a") == {1: 2, 2: 4}
    assert oracle.asked == [([1, 2], 0)]
    assert list(App.objects.values_list("slug", flat=True)) == ["a"]


def test_each_call_is_made_once(oracle: Oracle) -> None:
    @with_calls_outside_transaction
    def make() -> list[Any]:
        with transaction.atomic():
            return [resolve(oracle, one) for one in ([1], [1, 2], [2], [3, 1])]

    assert make() == [{1: 2}, {1: 2, 2: 4}, {2: 4}, {3: 6, 1: 2}]
    assert [questions for questions, _ in oracle.asked] == [[1], [2], [3]]


def test_calls_are_made_outside_the_outermost_transaction(oracle: Oracle) -> None:
    @with_calls_outside_transaction
    def inner(slug: str) -> Any:
        with transaction.atomic():
            write(slug)
            return resolve(oracle, [1])

    @with_calls_outside_transaction
    def outer() -> Any:
        with transaction.atomic():
            write("outer")
            return inner("inner")

    assert outer() == {1: 2}
    assert oracle.asked == [([1], 0)]
    assert sorted(App.objects.values_list("slug", flat=True)) == ["inner", "outer"]


def test_results_are_not_kept_between_calls(oracle: Oracle) -> None:
    @with_calls_outside_transaction
    def make() -> Any:
        with transaction.atomic():
            return resolve(oracle, [1])

    assert [make(), make()] == [{1: 2}] * 2
    assert len(oracle.asked) == 2


def test_failure_resets_the_state(oracle: Oracle) -> None:
    @with_calls_outside_transaction
    def fail() -> None:
        with transaction.atomic():
            write("a")
            resolve(oracle, [1])
            raise ValueError("after all")

    with pytest.raises(ValueError, match="after all"):
        fail()

    assert App.objects.count() == 0
    # Nobody asks first any more.
    assert resolve(oracle, [2]) == {2: 4}


def test_calls_of_one_source_are_merged(oracle: Oracle) -> None:
    other = Oracle()

    found = merge_questions(
        [NeedsAnswer(oracle, [1, 2]), NeedsAnswer(other, [5]), NeedsAnswer(oracle, [2, 3])]
    )

    assert (found.ask, found.questions) == (oracle, [1, 2, 3])
