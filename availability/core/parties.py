"""Resources for parties of so many people."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, combinations_with_replacement, product
from math import comb, prod
from typing import Any, NamedTuple

MAX_PARTY = 10_000  # people
# Ranges of the resources that requirements may take together, and that are tried for a party.
MAX_COMBINATIONS = 1000

Range = tuple[int, int]  # how many people a resource suits, at least and at most
NO_RANGE: Range = (0, 0)  # of a resource that does not count
# More than the least numbers of all resources of a booking together.
_LEASTS = 10**8


class Party(NamedTuple):
    """A party of so many people, and the ranges of resources by id; others suit any number."""

    size: int
    ranges: Mapping[Any, Range]

    def range_of(self, resource_id: Any) -> Range:
        return self.ranges.get(resource_id, NO_RANGE)

    def is_suited_by(self, resource_ids: Iterable[Any]) -> bool:
        """Whether the resources suit the party together."""
        return suits(self.size, map(self.range_of, resource_ids))


def join_ranges(ranges: Iterable[Range]) -> Range:
    """Return how many people resources suit together: their ranges add up."""
    least, most = 0, 0
    for own_least, own_most in ranges:
        least, most = least + own_least, most + own_most
    return least, most


def suits(size: int, ranges: Iterable[Range]) -> bool:
    """Return whether resources with these ranges suit a party together; those without do not
    count.
    """
    least, most = joined = join_ranges(ranges)
    return joined == NO_RANGE or least <= size <= most


def party_rank(party: Range | None) -> int:
    """Return the place of a resource among those that suit a party: those for few people first, at
    most, then at least; those for any number (None, NO_RANGE) last. The sum of the ranks is that of
    several resources.
    """
    least, most = party if party and party != NO_RANGE else (0, MAX_PARTY + 1)
    return most * _LEASTS + least


Kinds = Collection[tuple[Collection[Range], int]]  # ranges to choose from, how many are chosen


def count_combinations(kinds: Kinds) -> int:
    return prod(comb(len(ranges) + number - 1, number) for ranges, number in kinds)


def find_combinations(kinds: Kinds, size: int) -> Iterator[tuple[Range, ...]]:
    """Yield the ranges that suit a party of `size` people together, as many as each of `kinds`
    says, in their order.
    """
    choices = (combinations_with_replacement(ranges, number) for ranges, number in kinds)
    for chosen in product(*choices):
        combination = tuple(chain.from_iterable(chosen))
        if suits(size, combination):
            yield combination
