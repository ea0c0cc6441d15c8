"""The end of a session: SESSION_IDLE after its last request, SESSION_COOKIE_AGE after its begin.

The session's row has its end, so that lists and the daily purge know it.
"""

from contextlib import suppress
from datetime import datetime

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase, UpdateError

from common.errors import ignore_database_outage
from common.time.instants import to_datetime

BEGAN, ENDS = "began", "ends"  # seconds since 1970
STEP = 300  # seconds: most requests write nothing


def begin_session(session: SessionBase, *, now: datetime) -> None:
    """Begin anew: the session's account has logged in."""
    session.pop(BEGAN, None)
    session.pop(ENDS, None)
    postpone_session_end(session, now=now)


def session_end(session: SessionBase) -> datetime:
    """Return when a session that has begun ends, if no further request postpones the end."""
    return to_datetime(session[ENDS])


def postpone_session_end(session: SessionBase, *, now: datetime) -> None:
    began = session.get(BEGAN) or int(now.timestamp())
    ends = min(began + settings.SESSION_COOKIE_AGE, int(now.timestamp()) + settings.SESSION_IDLE)
    if ends < session.get(ENDS, 0) + STEP:
        return
    session[BEGAN], session[ENDS] = began, ends
    session.set_expiry(to_datetime(ends))
    is_saved = False
    with suppress(UpdateError), ignore_database_outage():
        session.save()
        is_saved = True
    # Pages are shown while the database accepts no writes.
    session.modified = is_saved
