"""From claimed deliveries to what goes over the network: a second look first, then the send.

`prepare` reads what a batch needs, in a number of queries that does not grow with it, and gives
for each delivery either the reason not to send it or a function that sends it. That function uses
the network only: it runs in a thread that has no database.
"""

import logging
import smtplib
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from django.core.mail import EmailMessage, get_connection
from django.core.mail.message import BadHeaderError

from apps_config.models import App
from availability.models import Resource
from availability.targets import Targets
from bookings.graphs import OWNER
from bookings.models import Booking, StateChange
from bookings.records import INCLUDES, WHOLE, with_includes
from notifications import safe_http
from notifications.addressees import Addressees
from notifications.mail import Letter, compose, compose_notice, compose_password_mail
from notifications.models import Delivery, EmailTemplate, Webhook
from notifications.password_links import LINK_LASTS, password_url
from notifications.planning import render_record
from notifications.relevance import outdated_reminder_reason
from notifications.results import Outcome, Verdict, mine_alone
from notifications.services import DISABLED, FORGOTTEN, TEST, secrets_of
from notifications.signing import signature_headers
from notifications.watchdog import watched
from scheduling.api.errors import is_outage
from scheduling.api.secrets import SecretUnreadable

logger = logging.getLogger(__name__)

Send = Callable[[], Outcome]

# Seconds, all in all.
CALL_DEADLINE, MAIL_DEADLINE = 15.0, 25.0
# Which words a kind of mail takes: states that say the same to the reader share them.
SLUG_OF = {"paid": "confirmed", "cancelled_by_owner": "cancelled"}


class Unfit(Exception):
    """It is not to be sent: a final state, and why."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.verdict = Verdict(state, reason)


class Batch(Protocol):
    """The rows of one claim on their way out: what sends each."""

    def __init__(self, rows: Sequence[Delivery], now: datetime) -> None: ...

    def send_of(self, row: Delivery) -> Send:
        """What sends it, without the database. Raises Unfit."""

    def end(self) -> None:
        """Called once all are asked for, still in the pump's own thread."""


TRANSPORTS: dict[str, type[Batch]] = {}


def transports(*kinds: str) -> Callable[[type[Batch]], type[Batch]]:
    """Have the class make deliveries of these types ready: the rooms above bring their own."""

    def register(batch: type[Batch]) -> type[Batch]:
        TRANSPORTS.update(dict.fromkeys(kinds, batch))
        return batch

    return register


def prepare(
    rows: Sequence[Delivery], *, now: datetime
) -> tuple[list[tuple[Delivery, Send]], list[tuple[Delivery, Verdict]]]:
    """What is to be sent, and what is not: of rows of one type."""
    batch = TRANSPORTS[rows[0].type](rows, now)
    sends, verdicts = [], []
    for row in rows:
        try:
            sends.append((row, batch.send_of(row)))
        except Unfit as unfit:
            verdicts.append((row, unfit.verdict))
        except Exception as error:
            if is_outage(error):
                raise  # of none of them is known whether it can be sent
            # One that can't be made ready must not hold up the others.
            logger.exception("delivery %s can't be prepared", row.id)
            verdicts.append((row, Verdict(Delivery.FAILED, "It could not be put together.")))
    batch.end()
    return sends, verdicts


@transports(Delivery.EMAIL, Delivery.WEBHOOK)
class MailsAndCalls:
    """The rows that a batch of deliveries of one type needs, each kind read at once."""

    def __init__(self, rows: Sequence[Delivery], now: datetime) -> None:
        self.now = now
        self.apps = App.objects.in_bulk({row.app_id for row in rows})
        self.webhooks = Webhook.objects.in_bulk({row.webhook_id for row in rows} - {None})
        self.bookings = self._read_bookings(rows)
        self.sequences = self._read_sequences(rows)
        mailed = {row.app_id for row in rows if row.type == Delivery.EMAIL}
        self.templates = {
            (template.app_id, template.slug): template
            for template in _if_any(EmailTemplate.objects.filter(app__in=mailed), mailed)
        }
        self.addressees = Addressees(mailed)
        events = [one.event for one in self.bookings.values() if one.app_id in mailed]
        self.targets = Targets(events)
        self.resources = self._read_resources(rows)
        self.rendered: list[Delivery] = []
        self.secrets: dict[UUID, Sequence[str]] = {}

    def _read_bookings(self, rows: Sequence[Delivery]) -> Mapping[UUID, Booking]:
        """Whole ones: as they are now, not as they were when the delivery was planned."""
        ids = {row.booking_id for row in rows if row.booking_id and _needs_booking(row)}
        includes = [INCLUDES[name] for name in WHOLE]
        whole = with_includes(Booking.objects.filter(id__in=ids), includes)
        return {booking.id: booking for booking in _if_any(whole.select_related("app"), ids)}

    def _read_resources(self, rows: Sequence[Delivery]) -> Mapping[str, Resource]:
        """Those that are mailed a link, by id, if they may still log in."""
        ids = {row.content.get("resource_id") for row in rows if row.kind == FORGOTTEN} - {None}
        found = Resource.objects.filter(id__in=ids, deleted_at=None).exclude(email=None)
        return {str(resource.id): resource for resource in _if_any(found, ids)}

    def _read_sequences(self, rows: Sequence[Delivery]) -> Mapping[int, int]:
        """How many changes its booking had seen before each: the SEQUENCE of its calendar entry."""
        ids = {row.booking_id for row in rows if row.type == Delivery.EMAIL and row.booking_id}
        changes = StateChange.objects.filter(booking__in=ids).order_by("id")
        seen: Counter[UUID] = Counter()
        places = {}
        for change_id, booking_id in _if_any(changes.values_list("id", "booking_id"), ids):
            places[change_id] = seen[booking_id]
            seen[booking_id] += 1
        return places

    def send_of(self, row: Delivery) -> Send:
        """What sends it. Raises Unfit."""
        app = self.apps[row.app_id]
        check_app(app)
        if row.kind == Delivery.REMINDER:
            check_still_holds(row, self.bookings[row.booking_id])
        return self._mail(row, app) if row.type == Delivery.EMAIL else self._call(row)

    # --- Calls ------------------------------------------------------------------------------------
    def _call(self, row: Delivery) -> Send:
        secrets: Sequence[str] = ()
        if row.webhook_id:
            webhook = self.webhooks[row.webhook_id]
            if webhook.deleted_at or not webhook.active:
                raise Unfit(Delivery.SKIPPED, "The webhook is disabled.")
            url, method, code = webhook.url, webhook.method, webhook.expected_response_code
            try:
                secrets = self._secrets_of(webhook)
            except SecretUnreadable as unreadable:
                # The operator's mistake: a try that fails, and later ones when it is mended.
                logger.error("webhook %s: %s", webhook.id, unreadable)
                return partial(Outcome, ok=False, error="The webhook's secret can't be read.")
        else:
            url, method = row.content["url"], row.content["method"]
            code = row.content.get("expected_response_code")
        if not row.body:
            row.body = render_record(self.bookings[row.booking_id])
            self.rendered.append(row)
        event = "webhook.test" if row.kind == TEST else f"booking.{row.kind}"
        return partial(send_call, row.id, event, url, method, row.body, code, secrets)

    def _secrets_of(self, webhook: Webhook) -> Sequence[str]:
        if webhook.id not in self.secrets:
            self.secrets[webhook.id] = secrets_of(webhook, now=self.now)
        return self.secrets[webhook.id]

    def end(self) -> None:
        """Keep the bodies: what was rendered now is what every later try sends too; unless its
        lease is gone, with what an erasure has emptied meanwhile."""
        if self.rendered:
            mine_alone(self.rendered).bulk_update(self.rendered, ["body"])

    # --- Mails ------------------------------------------------------------------------------------
    def _mail(self, row: Delivery, app: App) -> Send:
        if row.kind == FORGOTTEN:
            return self._password_mail(row, app)
        if row.kind == DISABLED:
            to = self._fit_addresses(app, self.addressees.owners(app))
            notice = compose_notice(
                app=app,
                delivery_id=row.id,
                to=to,
                subject="A webhook was disabled",
                sentence="It is not called any more until it is switched on again.",
                **row.content,
            )
            return partial(send_mail, notice)
        if app.settings.get("disable_emails"):
            raise Unfit(Delivery.SKIPPED, "The app's e-mails are switched off.")
        booking = self.bookings[row.booking_id]
        customers = list(booking.customers.all())
        customer = next((one for one in customers if one.id == row.customer_id), None)
        to = [customer.email] if customer else self.addressees.of_owner(app, booking)
        slug = f"{SLUG_OF.get(row.kind, row.kind)}_{row.recipient}"
        message = compose(
            Letter(
                slug=slug,
                delivery_id=row.id,
                booking=booking,
                recipient=row.recipient,
                to=self._fit_addresses(app, to),
                # Those whose data was erased are nobody any more.
                customers=[one for one in customers if one.email],
                customer=customer,
                facts={**row.content, "sequence": self.sequences[row.change_id]},
                template=self.templates.get((app.id, slug)),
                is_entered=self._is_entered(booking, row.recipient),
            )
        )
        return partial(send_mail, message)

    def _password_mail(self, row: Delivery, app: App) -> Send:
        resource = self.resources.get(row.content.get("resource_id", ""))
        if resource is None:
            raise Unfit(Delivery.SKIPPED, "There is no address to send it to.")
        message = compose_password_mail(
            app=app,
            delivery_id=row.id,
            to=self._fit_addresses(app, [resource.email]),
            url=password_url(resource, row.due_at + LINK_LASTS),
        )
        return partial(send_mail, message)

    def _fit_addresses(self, app: App, addresses: Iterable[str]) -> list[str]:
        """Those that may be written to. Raises Unfit where there are none."""
        found = [address for address in addresses if address]
        if not found:
            raise Unfit(Delivery.SKIPPED, "There is no address to send it to.")
        allowed = self.addressees.allowed(app, found)
        if not allowed:
            raise Unfit(Delivery.SKIPPED, "A test app mails only its members.")
        return allowed

    def _is_entered(self, booking: Booking, recipient: str) -> bool:
        """Whether the recipient's calendar has the booking already: the owner's is written to, and
        a customer is invited by the provider."""
        calendar = self.targets.of(booking.event)
        if calendar is None:
            return False
        return recipient == OWNER or (booking.event.invite and calendar.provider_invites)


def _if_any(rows: Any, keys: Iterable[Any]) -> Any:
    return rows if keys else ()


def _needs_booking(row: Delivery) -> bool:
    """A call about a change carries its body already."""
    return row.type == Delivery.EMAIL or not row.body or row.kind == Delivery.REMINDER


def check_app(app: App) -> None:
    """Raise Unfit for one that is archived: nothing of it leaves any more."""
    if app.archived_at:
        raise Unfit(Delivery.SKIPPED, "The app is archived.")


def check_still_holds(row: Delivery, booking: Booking) -> None:
    """Raise Unfit for a reminder whose booking was moved or called off meanwhile."""
    if reason := outdated_reminder_reason(row, booking):
        raise Unfit(Delivery.CANCELLED, reason)


# --- Over the network -----------------------------------------------------------------------------
def send_call(
    delivery_id: UUID,
    event: str,
    url: str,
    method: str,
    body: str,
    expected_code: int | None,
    secrets: Sequence[str],
) -> Outcome:
    """One try of a webhook call, with Standard Webhooks headers; a GET carries no body."""
    content = b"" if method == "get" else body.encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "scheduling-webhooks/2",
        "Service-Event": event,
        **signature_headers(
            message_id=str(delivery_id), timestamp=int(time.time()), body=content, secrets=secrets
        ),
    }
    reply = safe_http.call(
        url, method=method.upper(), headers=headers, body=content, deadline=CALL_DEADLINE
    )
    return judge_reply(reply, expected_code)


def judge_reply(reply: safe_http.Reply, expected_code: int | None) -> Outcome:
    """The expected status is a success (any 2xx where none is named), and nothing else."""
    status = reply.status
    wanted = 200 <= (status or 0) <= 299 if expected_code is None else status == expected_code
    ok = wanted and not reply.error
    error = "" if ok else reply.error or f"Answered {status}."
    return Outcome(
        ok=ok,
        seconds=reply.seconds,
        response_code=status,
        error=error,
        excerpt=reply.excerpt,
        retry_after=reply.retry_after,
        final=status == 410,
        server_failed=not ok and (status is None or status >= 500 or status == 429),
    )


class MailSession:
    """The one mail server session of one try, and how it is cut when its time is over."""

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.was_cut = False
        self.backend = get_connection()

    def send(self, message: EmailMessage) -> None:
        message.connection = self.backend
        message.send()

    def cut(self) -> None:
        self.was_cut = True
        smtp = getattr(self.backend, "connection", None)
        if smtp and smtp.sock:
            with suppress(OSError):
                smtp.sock.shutdown(socket.SHUT_RDWR)


def send_mail(message: EmailMessage) -> Outcome:
    """One try of one mail, in a session of its own: nothing else can be lost with it."""
    began = time.monotonic()
    code, error, final = None, "", False
    session = MailSession(began + MAIL_DEADLINE)
    try:
        with watched(session):
            session.send(message)
    except smtplib.SMTPRecipientsRefused as refused:
        codes = [code for code, _ in refused.recipients.values()]
        code = max(codes)
        error, final = "The server refused the address.", min(codes) >= 500
    except smtplib.SMTPResponseException as answer:
        code = answer.smtp_code
        error, final = f"The server answered {code}.", code >= 500
    except (smtplib.SMTPException, OSError) as trouble:
        error = f"The mail server could not be reached ({type(trouble).__name__})."
    except (BadHeaderError, ValueError) as poison:
        error, final = f"The mail can't be written ({type(poison).__name__}).", True
    if code is not None and code < 0:
        # So smtplib counts an answer that begins with no code.
        code, error = None, "The answer of the mail server is not SMTP."
    if error and session.was_cut:
        # An answer that broke off says nothing.
        code, error, final = None, "The mail server took too long.", False
    return Outcome(
        ok=not error,
        seconds=time.monotonic() - began,
        response_code=code,
        error=error,
        final=final,
    )
