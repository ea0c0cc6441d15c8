"""Fair turns: which resource is furthest behind its share of the bookings."""

import uuid
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple


class Turn(NamedTuple):
    """A resource's turn.

    share: how many of all bookings are due to the resource. position: 1 for the resource that gets
    the next booking; None: the resource has no turns (weight 0).
    """

    weight: int
    bookings: int
    share: Fraction
    position: int | None


def find_turns(
    keys: Sequence[uuid.UUID], weights: Mapping[uuid.UUID, int], counts: Mapping[uuid.UUID, int]
) -> dict[uuid.UUID, Turn]:
    """Return the turns of the resources by position, then the resources without turns.

    weights: 1 if absent. counts: bookings of each. Resources with equal claims keep the order of
    `keys`. The shares are exact fractions.
    """
    weight_of = {key: weights.get(key, 1) for key in keys}
    by_turn = [key for key in keys if weight_of[key]]
    whole = sum(weight_of.values()) or 1
    number = sum(counts.get(key, 0) for key in by_turn)
    shares = {key: Fraction(weight_of[key] * number, whole) for key in keys}
    by_turn.sort(key=lambda key: counts.get(key, 0) - shares[key])
    places: dict[uuid.UUID, int | None] = {key: n for n, key in enumerate(by_turn, start=1)}
    return {
        key: Turn(weight_of[key], counts.get(key, 0), shares[key], places.get(key))
        for key in [*by_turn, *(key for key in keys if not weight_of[key])]
    }
