"""How Django's lists and forms show times: as `apps_config.days.moment_words` does."""

DATE_FORMAT = "D j M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "D j M Y, H:i T"
