"""Questions to others that must not be asked inside a transaction, though they arise in one.

    @asks_first
    def write() -> Booking:
        with transaction.atomic():
            taken = answers_of(ask, [question])  # not asked yet: the transaction is undone, the
            ...                                  # question asked, and all of it done once more

Where nobody asks first, `answers_of` asks on the spot: its caller has no transaction open.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Params = ParamSpec("Params")
Result = TypeVar("Result")
Ask = Callable[[Collection[Any]], Mapping[Any, Any]]

_known: ContextVar[dict[tuple[Ask, Hashable], Any] | None] = ContextVar("known", default=None)


class Unasked(Exception):
    """Gets out of every transaction, to `asks_first`: no refusal, and no client ever sees it."""

    def __init__(self, ask: Ask, questions: Collection[Hashable]) -> None:
        super().__init__("to be asked outside of the transaction")
        self.ask, self.questions = ask, questions


def answers_of(ask: Ask, questions: Collection[Hashable]) -> Mapping[Any, Any]:
    """question -> answer, as `ask` gives them, a function that answers each of them. Raises Unasked
    where `asks_first` has to ask before it goes on."""
    known = _known.get()
    if known is None:
        return ask(questions)
    missing = [question for question in questions if (ask, question) not in known]
    if missing:
        raise Unasked(ask, missing)
    return {question: known[ask, question] for question in questions}


def asks_first(run: Callable[Params, Result]) -> Callable[Params, Result]:
    """Has a function run again, with the answers, whenever it came to a question in a transaction.

    It must leave nothing behind where Unasked is raised in it: it opens that transaction itself.
    Inside another such function it is that one's to ask.
    """

    @wraps(run)
    def asking(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        if _known.get() is not None:
            return run(*args, **kwargs)
        known: dict[tuple[Ask, Hashable], Any] = {}
        token = _known.set(known)
        try:
            while True:
                try:
                    return run(*args, **kwargs)
                except Unasked as unasked:
                    answers = unasked.ask(unasked.questions)
                    known |= {(unasked.ask, one): answers[one] for one in unasked.questions}
        finally:
            _known.reset(token)

    return asking


def merged(several: Collection[Unasked]) -> Unasked:
    """Those of one asker as one, so that what many changes want to know is asked in one go."""
    first = next(iter(several))
    same = [one for one in several if one.ask is first.ask]
    return Unasked(
        first.ask, list(dict.fromkeys(question for one in same for question in one.questions))
    )
