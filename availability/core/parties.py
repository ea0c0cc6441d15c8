"""Resources for parties of so many people."""

MAX_PARTY = 10_000  # people


def party_rank(party: tuple[int, int] | None) -> tuple[int, int]:
    """Return the place of a resource among those that suit a party: those for small ones first.

    party: how many people it suits, at least and at most; None: any number.
    """
    return (MAX_PARTY + 1, 0) if party is None else party[::-1]
