"""Hooks: a package defines a hook, layers above register functions with it."""

from collections.abc import Iterator
from typing import Generic, TypeVar

Registered = TypeVar("Registered")


class Hook(Generic[Registered]):
    """Registered functions, in the order of their registration.

    on_transition = Hook[TransitionListener]()

    @on_transition.register
    def plan_deliveries(steps: Sequence[Transition]) -> None: ...
    """

    def __init__(self) -> None:
        self._registered: list[Registered] = []

    def register(self, added: Registered) -> Registered:
        """Add `added` and return it: a decorator."""
        self._registered.append(added)
        return added

    def __iter__(self) -> Iterator[Registered]:
        return iter(self._registered)
