"""The service with a clock that stands still and brief password hashes: what it counts by the hour
meets no new hour, and no attempt waits for a hash."""

import time_machine

time_machine.travel("2026-11-20T09:30:00+00:00", tick=False).start()

from django.conf import settings  # noqa: E402

from scheduling.wsgi import application  # noqa: E402

settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

__all__ = ["application"]
