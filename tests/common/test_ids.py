import uuid
from datetime import UTC, datetime

import time_machine

from common.ids import new_id


def test_an_id_is_a_uuid_of_version_7_that_tells_its_moment() -> None:
    with time_machine.travel(datetime(2026, 11, 20, 9, 30, tzinfo=UTC), tick=False):
        made = new_id()

    moment = datetime.fromtimestamp((made.int >> 80) / 1000, UTC)
    assert (made.version, made.variant, moment) == (
        7,
        uuid.RFC_4122,
        datetime(2026, 11, 20, 9, 30, tzinfo=UTC),
    )


def test_ids_of_one_instant_keep_their_order() -> None:
    with time_machine.travel(datetime(2026, 11, 20, tzinfo=UTC), tick=False):
        made = [new_id() for _ in range(10_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)
