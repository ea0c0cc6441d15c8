"""Fair turns: whoever is furthest behind their share comes next."""

import random
import uuid
from collections import Counter
from fractions import Fraction

import pytest

from availability.core.fairness import Turn, find_turns

ADA, BEN, CY = (uuid.UUID(int=number) for number in range(3))


def test_resource_behind_its_share_comes_first() -> None:
    turns = find_turns([ADA, BEN, CY], {BEN: 2}, {ADA: 2, BEN: 2, CY: 0})

    assert turns == {
        CY: Turn(1, 0, Fraction(1), 1),
        BEN: Turn(2, 2, Fraction(2), 2),
        ADA: Turn(1, 2, Fraction(1), 3),
    }
    assert list(turns) == [CY, BEN, ADA]


def test_equal_resources_keep_the_order_of_the_project() -> None:
    assert list(find_turns([CY, ADA, BEN], {}, {})) == [CY, ADA, BEN]


def test_zero_weight_has_no_turn_and_no_share() -> None:
    turns = find_turns([ADA, BEN], {ADA: 0}, {ADA: 7, BEN: 3})

    assert turns == {BEN: Turn(1, 3, Fraction(3), 1), ADA: Turn(0, 7, Fraction(0), None)}


def test_all_weights_are_zero() -> None:
    turns = find_turns([ADA, BEN], {ADA: 0, BEN: 0}, {ADA: 1})

    assert [turn.position for turn in turns.values()] == [None, None]


@pytest.mark.parametrize("seed", range(5))
def test_ten_thousand_bookings_are_shared_within_a_percent(seed: int) -> None:
    """With weights, holidays that end, and days on which some do not work."""
    chance = random.Random(seed)
    people = [uuid.UUID(int=number) for number in range(chance.randint(2, 9))]
    weights = {person: chance.choice((1, 1, 2, 5)) for person in people}
    number = 10_000
    away = {}
    for person in people[1:]:
        begin = chance.randrange(number // 3)
        away[person] = range(begin, begin + chance.randrange(number // 5))
    counts: Counter[uuid.UUID] = Counter()

    for booking in range(number):
        here = [person for person in people if booking not in away.get(person, ())]
        free = {person for person in here if chance.random() < 0.9} or set(here)
        turns = find_turns(people, weights, counts)
        counts[next(person for person in turns if person in free)] += 1

    shares = {person: number * weights[person] / sum(weights.values()) for person in people}
    errors = {person: abs(counts[person] - share) / number for person, share in shares.items()}
    assert max(errors.values()) <= 0.01, (counts, shares)
