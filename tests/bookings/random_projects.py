"""How many random projects the properties over the API try: what is offered can be booked, and
nothing else.

Five such properties (offered slots, requirements, visits, numbers, seats) make 300 together on
PostgreSQL. The ordinary run on SQLite, whose statements alone differ, tries a fifth of them.
"""

import os

from hypothesis import HealthCheck, settings

ORDINARY = 60


def thorough(*, deep: int, parts: int = 1) -> settings:
    """Return the settings of a property, or of one of its `parts`, with `deep` examples in all."""
    ordinary = ORDINARY // 5 if os.environ.get("TEST_DATABASE") == "sqlite" else ORDINARY
    examples = deep if settings().max_examples > 100 else ordinary
    return settings(
        max_examples=-(-examples // parts),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
