from collections.abc import Callable

from common.hooks import Hook


def test_what_is_registered_comes_in_that_order() -> None:
    on_change = Hook[Callable[[int], int]]()

    @on_change.register
    def double(number: int) -> int:
        return 2 * number

    on_change.register(abs)

    assert list(on_change) == [double, abs]
    assert [listener(-3) for listener in on_change] == [-6, 3]


def test_a_hook_without_users_is_empty() -> None:
    assert list(Hook[Callable[[], None]]()) == []
