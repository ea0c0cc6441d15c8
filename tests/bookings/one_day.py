"""A Monday of tests, in UTC, and who books on it."""

DAY = "2026-11-23"
PERSON = {"customer": {"name": "Marty", "email": "marty@example.com"}}


def clock_time(time: str) -> str:
    return f"{DAY}T{time}:00+00:00"


def span(start: str, end: str) -> dict[str, str]:
    return {"start": clock_time(start), "end": clock_time(end)}
