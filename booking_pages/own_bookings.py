"""Own bookings: the request of a one-time link, and the short session that it begins.

The session is a signed cookie with app and address; only its log-out is stored, so that a copy of
the cookie ends, too. Neither the response to a request nor its time depends on whether the address
has bookings.
"""

import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from apps_config.models import App
from apps_config.public_limits import (
    BOOKING_LINKS,
    PER_ADDRESS,
    PER_APP,
    LimitReached,
    count_first_use,
    count_refusal,
    count_subjects,
    was_used,
)
from bookings.graphs import CUSTOMER, INITIALIZED
from bookings.models import Booking, further_events
from bookings.pages.action_links import own_bookings_path
from bookings.privacy import Person
from common.email_address import limit_key
from common.keyed_digests import keyed_digest
from common.time.instants import to_datetime
from notifications.links.own_bookings import LINK_LASTS, LINK_MAIL
from notifications.models import Delivery
from notifications.outbox.queueing import queue_delivery

COOKIE = "own_bookings"
SALT = "booking_pages.own_bookings"
SESSION_LASTS = timedelta(minutes=30)
ENDED = f"{BOOKING_LINKS}:ended"


# --- The link -------------------------------------------------------------------------------------
def request_link(app: App, email: str, *, network: str, now: datetime) -> None:
    """Queue the e-mail with a link; nobody gets it if the address has no bookings.

    `network`: of the client. Raises LimitReached.
    """
    try:
        # First, so that a network that is refused uses up no limit of others.
        count_subjects(app, [(PER_ADDRESS, network)], now)
        # Requests for links have the limit of the app's bookings, but not their count.
        count_subjects(app, [(BOOKING_LINKS, limit_key(email)), (PER_APP, "links")], now)
    except LimitReached as refusal:
        count_refusal(app, refusal.kind, now=now)
        raise
    # Of an unknown address too, so that both take the same time; the address itself is not stored.
    newest = Person(app, email).customers().filter(booking__deleted_at=None).order_by("-id").first()
    with transaction.atomic():
        queue_delivery(
            app=app,
            booking_id=newest.booking_id if newest else None,
            customer=newest,
            type=Delivery.EMAIL,
            kind=LINK_MAIL,
            recipient=CUSTOMER,
            expires_at=now + LINK_LASTS,
            now=now,
        )


# --- The session ----------------------------------------------------------------------------------
class OwnBookingsSession(NamedTuple):
    """A customer who has opened a link. `form_token` is part of each form: other sites can't know
    it.
    """

    person: Person
    form_token: str
    nonce: str
    expires_at: datetime

    def upcoming(self, now: datetime) -> QuerySet[Booking]:
        return self._bookings().filter(completed=False, event__end__gt=now)

    def past(self, now: datetime) -> QuerySet[Booking]:
        """Those that have ended or were cancelled."""
        return self._bookings().filter(Q(completed=True) | Q(event__end__lte=now))

    def _bookings(self) -> QuerySet[Booking]:
        rows = Booking.objects.for_app(self.person.app).exclude(state=INITIALIZED)
        rows = rows.filter(id__in=self.person.customers().values("booking"))
        return rows.select_related(
            "app", "event__calendar", "resource", "project"
        ).prefetch_related("customers", further_events())


def read_session(request: HttpRequest, app: App, *, now: datetime) -> OwnBookingsSession | None:
    cookie = request.COOKIES.get(COOKIE, "")
    try:
        content = Signer(salt=SALT).unsign_object(cookie)
    except (BadSignature, ValueError):
        return None
    expires_at = to_datetime(content["expires"])
    if content["app"] != str(app.id) or now >= expires_at:
        return None
    if was_used(app, ENDED, content["nonce"], expires_at):
        return None
    person = Person(app, content["email"])
    return OwnBookingsSession(person, _form_token(cookie), content["nonce"], expires_at)


def begin_session(response: HttpResponse, app: App, email: str, *, now: datetime) -> None:
    content = {
        "app": str(app.id),
        "email": email,
        "nonce": secrets.token_urlsafe(12),
        "expires": int((now + SESSION_LASTS).timestamp()),
    }
    response.set_cookie(
        COOKIE,
        Signer(salt=SALT).sign_object(content),
        max_age=SESSION_LASTS,
        path=own_bookings_path(app),
        secure=settings.HTTPS,
        httponly=True,
        samesite="Lax",
    )


def end_session(response: HttpResponse, session: OwnBookingsSession) -> None:
    """End the session, also for copies of its cookie."""
    app = session.person.app
    count_first_use(app, ENDED, session.nonce, session.expires_at)
    response.delete_cookie(COOKIE, path=own_bookings_path(app), samesite="Lax")


def has_valid_form_token(session: OwnBookingsSession, given: str) -> bool:
    """Whether a form was sent by a page of the session."""
    return constant_time_compare(session.form_token, given)


def _form_token(cookie: str) -> str:
    return keyed_digest(f"{SALT}.forms", cookie).hex()
