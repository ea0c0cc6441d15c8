from collections.abc import Callable

from common.hooks import Hook


def test_functions_keep_the_order_of_registration() -> None:
    on_change = Hook[Callable[[int], int]]()

    @on_change.register
    def double(number: int) -> int:
        return 2 * number

    on_change.register(abs)

    assert list(on_change) == [double, abs]
    assert [listener(-3) for listener in on_change] == [-6, 3]


def test_unused_hook_is_empty() -> None:
    assert list(Hook[Callable[[], None]]()) == []
