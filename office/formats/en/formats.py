"""Date formats of Django's lists and forms, as in `office.base.dates.moment_words`."""

DATE_FORMAT = "D j M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "D j M Y, H:i T"
