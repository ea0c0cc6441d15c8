"""The columns of DailyTotal by what they count."""

from collections.abc import Mapping

# Column -> the states of its bookings; `kept` has those of its graph that take place.
ENDED_EARLY: Mapping[str, tuple[str, ...]] = {
    "cancelled": ("cancelled", "cancelled_by_owner"),
    "cancelled_by_customer": ("cancelled_by_customer",),
    "declined": ("declined",),
    "unpaid": ("unpaid",),
}
OUTCOMES = ("attended", "no_show")
# Column -> so many days before the start at least, and less than so many. Longer ones are the rest.
LEADS: Mapping[str, tuple[int | None, int]] = {
    "lead_1_day": (None, 1),
    "lead_3_days": (1, 3),
    "lead_1_week": (3, 7),
    "lead_2_weeks": (7, 14),
    "lead_4_weeks": (14, 28),
}
