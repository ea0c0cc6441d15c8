"""Make network calls outside of the transaction that needs their results.

A booking checks the free/busy times of external calendars (`bookings/services/live_check.py`).
Which calendars is known only after rows have been read, often under locks: a move of a series finds
its new times under its locks. A call at that point would hold the locks and a database connection
until the other server answers. Calls before the transaction would need a second path through every
caller to find the questions, and the rows could still change in between.

So the function runs until it needs an unknown answer. Then its transaction is rolled back, the
question is asked, and the function runs again with the answer. A new question in the second run
causes a third run.

    @with_calls_outside_transaction
    def write() -> Booking:
        with transaction.atomic():
            taken = resolve(ask, [question])  # unknown: rolls back, asks, and runs again
            ...

Outside of `with_calls_outside_transaction`, `resolve` asks at once: its caller has no open
transaction.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Params = ParamSpec("Params")
Result = TypeVar("Result")
Ask = Callable[[Collection[Any]], Mapping[Any, Any]]

_known: ContextVar[dict[tuple[Ask, Hashable], Any] | None] = ContextVar("known", default=None)


class NeedsAnswer(Exception):
    """Rolls back every transaction up to `with_calls_outside_transaction`. No client sees it."""

    def __init__(self, ask: Ask, questions: Collection[Hashable]) -> None:
        super().__init__("to be asked outside of the transaction")
        self.ask, self.questions = ask, questions


def resolve(ask: Ask, questions: Collection[Hashable]) -> Mapping[Any, Any]:
    """Return question -> answer. `ask` is the function that answers a collection of questions.

    Raises NeedsAnswer if `with_calls_outside_transaction` has to ask before it continues.
    """
    known = _known.get()
    if known is None:
        return ask(questions)
    missing = [question for question in questions if (ask, question) not in known]
    if missing:
        raise NeedsAnswer(ask, missing)
    return {question: known[ask, question] for question in questions}


def with_calls_outside_transaction(run: Callable[Params, Result]) -> Callable[Params, Result]:
    """Decorate a function to run again with the answers whenever it raises NeedsAnswer.

    The function opens its transactions itself, so that a NeedsAnswer rolls back all it has done.
    Nested in another decorated function it does not retry; the outer one does.
    """

    @wraps(run)
    def wrapper(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        if _known.get() is not None:
            return run(*args, **kwargs)
        known: dict[tuple[Ask, Hashable], Any] = {}
        token = _known.set(known)
        try:
            while True:
                try:
                    return run(*args, **kwargs)
                except NeedsAnswer as unasked:
                    answers = unasked.ask(unasked.questions)
                    known |= {
                        (unasked.ask, question): answers[question] for question in unasked.questions
                    }
        finally:
            _known.reset(token)

    return wrapper


def merge_questions(several: Collection[NeedsAnswer]) -> NeedsAnswer:
    """Merge the questions for the first one's `ask` into one NeedsAnswer: one call for all."""
    first = next(iter(several))
    same = [question for question in several if question.ask is first.ask]
    return NeedsAnswer(
        first.ask,
        list(
            dict.fromkeys(
                question for each_question in same for question in each_question.questions
            )
        ),
    )
