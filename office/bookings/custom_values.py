"""Custom data of bookings and customers, in words."""

from typing import Any

from django.utils.translation import gettext


def custom_values(meta: Any) -> list[tuple[str, str]]:
    """Return the texts, numbers and answers of custom data, with their keys in words."""
    pairs = meta.items() if isinstance(meta, dict) else ()
    shown = [(key, value) for key, value in pairs if isinstance(value, str | int | float | bool)]
    words = {True: gettext("yes"), False: gettext("no")}
    return [
        (
            key.replace("_", " ").capitalize(),
            words[value] if isinstance(value, bool) else str(value),
        )
        for key, value in shown
    ]
