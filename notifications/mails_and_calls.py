"""Prepare e-mails and webhook calls: the sender of these two types of deliveries."""

import copy
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db.models import QuerySet

from apps_config.changes import present_cursor
from apps_config.models import App, Invitation
from apps_config.signing_secrets import notification_secret
from availability.models import Calendar, Resource
from availability.serializers.calendars import CalendarSerializer
from bookings.conferences import MissingLinks, conference_url, lacks_link
from bookings.graphs import CUSTOMER, OWNER
from bookings.models import Booking, Customer, StateChange, UnverifiedBooking, further_events
from bookings.pages.formatting import first_known_zone, languages_of
from bookings.replacements import names_of_others_free
from bookings.serializers.responses import with_includes
from bookings.services import code_of
from common.email_address import canonical_address
from common.encryption import SecretUnreadable
from common.messages import Message
from common.time.instants import local_date
from notifications.awaited_links import (
    AWAITS_LINKS,
    FOLLOWS,
    SENT_WITHOUT_LINK,
    mark_sent_without_link,
)
from notifications.calendar_problems import CALENDAR_PROBLEM, CALENDAR_PROBLEM_EVENT
from notifications.links.invitations import INVITATION_MAIL, invitation_url
from notifications.links.own_bookings import LINK_MAIL, own_bookings_url
from notifications.links.resource_password_reset import LINK_LASTS, RESET_MAIL, password_url
from notifications.links.unsubscribe import unsubscribe_headers
from notifications.mail import (
    EmailCopy,
    Letter,
    compose_calendar_mail,
    compose_code_mail,
    compose_invitation_mail,
    compose_mail,
    compose_own_bookings_mail,
    compose_password_mail,
    compose_security_mail,
    compose_webhook_notice,
    copy_booking_mail,
    copy_notice,
    copy_subject,
    entry_of,
)
from notifications.mail.provider_entries import provider_entries
from notifications.mail.recipients import Recipients
from notifications.mail.smtp_session import send_mail
from notifications.mail.suppressions import Suppressions
from notifications.models import ChangeCalls, Delivery, EmailTemplate, Webhook
from notifications.outbox.outdated_reasons import (
    changed_since_reason,
    outdated_call_reason,
    outdated_reminder_reason,
)
from notifications.outbox.results import SendResult, with_lease
from notifications.outbox.senders import SendCall, SkipDelivery, senders
from notifications.outbox.sent_emails import SentCopy
from notifications.planning import (
    LINK,
    OF_COMPANION,
    REASSIGNED,
    TOLD_RESOURCES,
    UNASSIGNED,
    VERIFICATION_CODE,
)
from notifications.security_mails import NEW_DEVICE, SECURITY_MAILS
from notifications.webhooks.bodies import (
    TEST_EVENT,
    WHOLE_BOOKING,
    Change,
    body_with_kind,
    formatted,
    render_body,
    render_call,
)
from notifications.webhooks.call import send_call
from notifications.webhooks.services import TEST_CALL, WEBHOOK_DISABLED, signing_secrets

logger = logging.getLogger(__name__)

Read = TypeVar("Read")

# Kinds of mail that share the template of another kind.
CANCELLED = "cancelled_customer"
MAX_SEARCHED_DAYS = 5  # per batch, for the names of who is free
# Kind of a call that is about no change of a booking -> its event.
OTHER_EVENTS = {TEST_CALL: TEST_EVENT, CALENDAR_PROBLEM: CALENDAR_PROBLEM_EVENT}
SLUG_OF = {"paid": "confirmed", "cancelled_by_owner": "cancelled"}


class ComposedMail(NamedTuple):
    """An e-mail to send, and what people who look up what was sent may see of it."""

    message: EmailMultiAlternatives
    copy: EmailCopy


class MailedBooking(NamedTuple):
    """A booking that an e-mail is about: the change, the moves before it, and its facts."""

    booking: Booking
    change_id: UUID | None
    version: int
    facts: Mapping[str, Any]

    def customer(self, customer_id: UUID | None) -> Customer | None:
        customers = self.booking.customers.all()
        return next((each for each in customers if each.id == customer_id), None)

    def customer_with(self, addresses: Sequence[str]) -> Customer | None:
        wanted = set(map(canonical_address, addresses))
        customers = self.booking.customers.all()
        return next((each for each in customers if each.address in wanted), None)

    def changed_reason(self, state: str) -> str:
        """Return why the booking no longer has the state; "" if it has. A series has many."""
        if "until" in self.facts:
            return ""
        return changed_since_reason(self.booking, state, self.version)


@senders.register
class MailsAndCalls:
    """Reads the rows that a batch of mails and calls needs, each table once."""

    types: ClassVar[Collection[str]] = (Delivery.EMAIL, Delivery.WEBHOOK)

    def __init__(self, rows: Sequence[Delivery], now: datetime) -> None:
        self.now = now
        self.apps = App.objects.in_bulk({row.app_id for row in rows})
        self.webhooks = Webhook.objects.in_bulk({row.webhook_id for row in rows} - {None})
        self._read_bodies_of_changes(rows)
        self.bookings = self._read_bookings(rows)
        self.sequences = self._read_sequences(rows)
        self.series = self._read_series_with_links()
        self.sent_without_link = self._read_sent_without_link(rows)
        mailed = {row.app_id for row in rows if row.type == Delivery.EMAIL}
        self.templates = {
            (template.app_id, template.slug): template
            for template in _if_any(EmailTemplate.objects.filter(app__in=mailed), mailed)
        }
        self.addressees = Recipients(mailed)
        self.owners_resources = self._read_owners_resources(rows)
        self.as_mailed = self._as_mailed(rows)
        mailed_bookings = [each for each in self.bookings.values() if each.app_id in mailed]
        mailed_bookings += self.as_mailed.values()
        self.missing_links = MissingLinks(chain(self.bookings.values(), *self.series.values()))
        self.entries = [entries(mailed_bookings) for entries in provider_entries]
        self.resources = self._read_reset_mail_resources(rows)
        self.unverified = self._read_unverified(rows)
        self.invitations = self._read_invitations(rows)
        self.calendars = self._read_calendars(rows)
        self.persons = {row.content["email"] for row in rows if row.kind == NEW_DEVICE}
        self.suppressions = Suppressions(mailed, self._possible_recipients(mailed))
        self.rendered: list[Delivery] = []
        self.secrets: dict[UUID, Sequence[str]] = {}
        self.free_by_day: dict[tuple[UUID | None, UUID, date], Sequence[str]] = {}

    def _read_bodies_of_changes(self, rows: Sequence[Delivery]) -> None:
        """Give the calls of changes their common bodies. An erased one is rendered again."""
        calls = [row for row in rows if row.type == Delivery.WEBHOOK and row.webhook_id]
        change_ids = {row.change_id for row in calls if not row.body} - {None}
        found = ChangeCalls.objects.filter(change__in=change_ids).values_list("change", "body")
        bodies: dict[UUID | None, str] = dict(_if_any(found, change_ids))
        for row in calls:
            common = bodies.get(row.change_id, "")
            if common and row.kind == REASSIGNED:
                common = body_with_kind(common, f"booking.{REASSIGNED}")
            row.body = row.body or common

    def _read_bookings(self, rows: Sequence[Delivery]) -> Mapping[UUID | None, Booking]:
        """Return the bookings, for calls with includes, as they are now, not as planned."""
        ids = {each for row in rows if _needs_booking(row) for each in _booking_ids(row)}
        found: QuerySet[Booking] = Booking.objects.filter(id__in=ids)
        found = found.prefetch_related(further_events())
        if rows[0].type == Delivery.EMAIL:
            found = found.prefetch_related("customers")
            found = found.select_related("event", "resource", "project", "owner_booking__event")
        else:
            found = with_includes(found, WHOLE_BOOKING)
        bookings = list(_if_any(found, ids))
        for booking in bookings:
            booking.app = self.apps[booking.app_id]
        return {booking.id: booking for booking in bookings}

    def _read_series_with_links(self) -> Mapping[UUID | None, Sequence[Booking]]:
        """Return the bookings of series with video calls, by the series."""
        bookings = self.bookings.values()
        wanted = {each.series_id for each in bookings if each.event.conference_provider} - {None}
        found = Booking.objects.filter(series__in=wanted, deleted_at=None).select_related("event")
        series: dict[UUID | None, list[Booking]] = {series_id: [] for series_id in wanted}
        for booking in _if_any(found, wanted):
            series[booking.series_id].append(booking)
        return series

    def _read_sent_without_link(self, rows: Sequence[Delivery]) -> set[str]:
        """Return the ids of e-mails without a link, of those that e-mails with the link follow."""
        ids = {each for row in rows if row.kind == LINK for each in row.content[FOLLOWS]}
        found = Delivery.objects.filter(id__in=ids).values_list("id", "content")
        return {str(pk) for pk, content in _if_any(found, ids) if content.get(SENT_WITHOUT_LINK)}

    def _read_owners_resources(self, rows: Sequence[Delivery]) -> Mapping[UUID, Resource]:
        """Return the resources, by id, that e-mails to owners are for, and those that took their
        place.
        """
        ids = {
            UUID(each)
            for row in rows
            if row.recipient == OWNER
            for each in (row.content.get("resource_id"), *_other_mailed_resource_ids(row))
            if each
        }
        resources = {booking.resource_id: booking.resource for booking in self.bookings.values()}
        missing = ids - resources.keys()
        return resources | dict(Resource.objects.in_bulk(missing)) if missing else resources

    def _as_mailed(self, rows: Sequence[Delivery]) -> Mapping[UUID, Booking]:
        """Return, by e-mail to an owner, the booking with the main resource that it had at the
        change, if it has another one by now.
        """
        found = {}
        for row in rows:
            booking = self.bookings.get(row.booking_id)
            resource_id = row.content.get("resource_id") if row.recipient == OWNER else None
            if booking and resource_id and UUID(resource_id) != booking.resource_id:
                found[row.id] = _with_resource(booking, self.owners_resources[UUID(resource_id)])
        return found

    def _read_reset_mail_resources(self, rows: Sequence[Delivery]) -> Mapping[str, Resource]:
        """Return the resources that get a password link, by id, if they can still log in."""
        ids = {row.content.get("resource_id") for row in rows if row.kind == RESET_MAIL} - {None}
        found = Resource.objects.filter(id__in=ids, deleted_at=None).exclude(email=None)
        return {str(resource.id): resource for resource in _if_any(found, ids)}

    def _read_unverified(self, rows: Sequence[Delivery]) -> Mapping[str, UnverifiedBooking]:
        """Return the bookings whose address a code verifies, by id, if they still wait for it."""
        code_mails = [row for row in rows if row.kind == VERIFICATION_CODE]
        ids = {row.content.get("reservation_id") for row in code_mails} - {None}
        found = UnverifiedBooking.objects.filter(id__in=ids, ended_at=None)
        return {str(row.id): row for row in _if_any(found.select_related("project"), ids)}

    def _read_invitations(self, rows: Sequence[Delivery]) -> Mapping[str, Invitation]:
        """Return the open invitations that are mailed, by id."""
        invitation_mails = [row for row in rows if row.kind == INVITATION_MAIL]
        ids = {row.content.get("invitation_id") for row in invitation_mails} - {None}
        found = Invitation.objects.open().filter(id__in=ids)
        return {str(invitation.id): invitation for invitation in _if_any(found, ids)}

    def _read_calendars(self, rows: Sequence[Delivery]) -> Mapping[UUID, Calendar]:
        """Return the calendars whose problems are mailed, by id, if they are still connected."""
        problem_mails = [row for row in rows if row.kind == CALENDAR_PROBLEM]
        ids = {row.content.get("calendar_id") for row in problem_mails} - {None}
        found = Calendar.objects.filter(id__in=ids, deleted_at=None, connection__isnull=False)
        return {each.id: each for each in _if_any(found.select_related("connection"), ids)}

    def _possible_recipients(self, app_ids: Collection[UUID]) -> set[str]:
        """Return all addresses that the batch's e-mails can go to."""
        addresses = {row.email for row in self.unverified.values()}
        addresses |= {resource.email or "" for resource in self.resources.values()}
        addresses |= {invitation.email for invitation in self.invitations.values()}
        addresses |= self.persons
        for resource in self.owners_resources.values():
            addresses.update(self.addressees.of_owner(self.apps[resource.app_id], resource))
        for app_id in app_ids:
            addresses.update(self.addressees.owners(self.apps[app_id]))
        for booking in (*self.bookings.values(), *self.as_mailed.values()):
            addresses |= {customer.email for customer in booking.customers.all()}
            addresses.update(self.addressees.of_owner(booking.app, booking.resource))
        return addresses

    def _read_sequences(self, rows: Sequence[Delivery]) -> Mapping[tuple[UUID, UUID | None], int]:
        """Return (entry, change) -> SEQUENCE: the number of earlier changes of the calendar entry.

        The changes of a group's seats count for the owner's entry too.
        """
        mailed = [
            (self.bookings[booking_id], row.recipient)
            for row in rows
            if row.type == Delivery.EMAIL
            for booking_id in _booking_ids(row)
            if booking_id in self.bookings
        ]
        entries = {entry_of(booking, recipient) for booking, recipient in mailed}
        with_seats = {booking.id for booking, _ in mailed if booking.max_seats}
        with_seats |= entries - {booking.id for booking, _ in mailed}
        seats = Booking.objects.filter(owner_booking__in=with_seats)
        groups = dict(_if_any(seats.values_list("id", "owner_booking"), with_seats))
        changes = StateChange.objects.filter(booking__in=entries | groups.keys()).order_by("id")
        seen: Counter[UUID] = Counter()
        places: dict[tuple[UUID, UUID | None], int] = {}
        for change_id, booking_id in _if_any(changes.values_list("id", "booking_id"), entries):
            for entry in (booking_id, groups.get(booking_id)):
                if entry in entries:
                    places[entry, change_id] = seen[entry]
                    seen[entry] += 1
        return places

    def send_of(self, row: Delivery) -> SendCall:
        """Return the function that sends the row. Raises SkipDelivery."""
        app = self.apps[row.app_id]
        check_app_is_open(app)
        if row.kind == Delivery.REMINDER:
            check_reminder_is_current(row, self.bookings[row.booking_id])
        return self._mail(row, app) if row.type == Delivery.EMAIL else self._call(row)

    # --- Calls ------------------------------------------------------------------------------------
    def _call(self, row: Delivery) -> SendCall:
        secrets: Sequence[str] = ()
        webhook: Webhook | None
        if row.webhook_id:
            webhook = self.webhooks[row.webhook_id]
            if reason := outdated_call_reason(webhook):
                raise SkipDelivery(Delivery.SKIPPED, reason)
            url, method, code = webhook.url, webhook.method, webhook.expected_response_code
            try:
                secrets = self._secrets_of(webhook)
            except SecretUnreadable as unreadable:
                # A configuration error: fail this attempt; a retry can succeed once it is fixed.
                logger.error("webhook %s: %s", webhook.id, unreadable)
                return partial(SendResult, ok=False, error="The webhook's secret can't be read.")
        else:
            webhook = None
            url, method = row.content["url"], row.content["method"]
            code = row.content.get("expected_response_code")
            secrets = [notification_secret(row.app_id)]
        event = OTHER_EVENTS.get(row.kind, row.kind if "." in row.kind else f"booking.{row.kind}")
        if not row.body:
            row.body = self._rendered_body(row, event)
            self.rendered.append(row)
        body = formatted(
            row.body, webhook.format if webhook else None, kind=event, at=row.created_at
        )
        return partial(send_call, row.id, event, url, method, body, code, secrets)

    def _rendered_body(self, row: Delivery, event: str) -> str:
        """Of an event notification, or erased: then without the time before a move."""
        booking = self.bookings[row.booking_id]
        if row.webhook_id and row.change:
            return render_call(booking, Change.of(row.change, event), present_cursor(row.app_id))
        return render_body(booking)

    def _secrets_of(self, webhook: Webhook) -> Sequence[str]:
        if webhook.id not in self.secrets:
            self.secrets[webhook.id] = signing_secrets(webhook, now=self.now)
        return self.secrets[webhook.id]

    def store_rendered_bodies(self) -> None:
        """Store rendered bodies for later attempts, under the lease: an erasure may clear them."""
        if self.rendered:
            with_lease(self.rendered).bulk_update(self.rendered, ["body"])

    # --- Mails ------------------------------------------------------------------------------------
    def _mail(self, row: Delivery, app: App) -> SendCall:
        message, copied = self._composed(row, app)
        if not settings.SENT_EMAIL_RETENTION_DAYS:
            return self._noting_missing_link(row, partial(send_mail, message, app))
        bookings = (self.bookings[each] for each in _booking_ids(row))
        told = {booking.id: booking.updated_at for booking in bookings}
        send = partial(_send_and_copy, message, app, copied, told)
        return self._noting_missing_link(row, send)

    def _noting_missing_link(self, row: Delivery, send: SendCall) -> SendCall:
        """Return a call that also notes whether a first e-mail was sent without its links."""
        if AWAITS_LINKS not in row.content:
            return send
        together = self._together(self.bookings[row.booking_id], row.content)
        is_missing = any(map(lacks_link, together))
        return partial(_send_without_link, send, row.id) if is_missing else send

    def _together(self, booking: Booking, facts: Mapping[str, Any]) -> Sequence[Booking]:
        """Return the bookings of the series that an e-mail is about, or the one booking."""
        return self.series.get(booking.series_id, ()) if "occurrences" in facts else [booking]

    def _composed(self, row: Delivery, app: App) -> "ComposedMail":
        if row.kind == RESET_MAIL:
            return self._password_mail(row, app)
        if row.kind == VERIFICATION_CODE:
            return self._code_mail(row, app)
        if row.kind == INVITATION_MAIL:
            return self._invitation_mail(row, app)
        if row.kind == LINK_MAIL:
            return self._own_bookings_mail(row, app)
        if row.kind in SECURITY_MAILS:
            return self._security_mail(row, app)
        if row.kind == CALENDAR_PROBLEM:
            return self._calendar_mail(row, app)
        if row.kind == WEBHOOK_DISABLED:
            to = self._usable_addresses(app, self.addressees.owners(app))
            notice = compose_webhook_notice(app=app, delivery_id=row.id, to=to, **row.content)
            return ComposedMail(notice, copy_notice(notice))
        if row.kind == LINK:
            self._check_link_is_new(row)
        if app.settings.get("disable_emails"):
            raise SkipDelivery(Delivery.SKIPPED, Message("The app's e-mails are disabled."))
        booking = self.as_mailed.get(row.id) or self.bookings[row.booking_id]
        own = MailedBooking(booking, row.change_id, row.version, row.content)
        customer = own.customer(row.customer_id)
        to = [customer.email] if customer else self._owner_addresses(row, app, booking.resource)
        to = self._without_told(row, app, to)
        is_reminder = row.kind == Delivery.REMINDER and row.recipient == CUSTOMER
        to = self._usable_addresses(app, to, is_reminder=is_reminder)
        if "others" in row.content:
            letter, *others = self._current_letters(row, own, to)
        else:
            letter, others = self._letter(row, own, to, customer), []
        message = compose_mail(letter, others)
        if is_reminder and customer:
            message.extra_headers |= unsubscribe_headers(customer, row.due_at)
        return ComposedMail(message, copy_booking_mail(message, letter, others))

    def _letter(
        self, row: Delivery, mailed: "MailedBooking", to: Sequence[str], customer: Customer | None
    ) -> Letter:
        booking = mailed.booking
        together = self._together(booking, mailed.facts)
        entry = entry_of(booking, row.recipient)
        slug = f"{SLUG_OF.get(row.kind, row.kind)}_{row.recipient}"
        return Letter(
            slug=slug,
            delivery_id=row.id,
            booking=booking,
            recipient=row.recipient,
            to=to,
            # Erased customers have no address.
            customers=[each for each in booking.customers.all() if each.email],
            customer=customer,
            # The change of another booking of a series has no place among the entry's.
            facts={**mailed.facts, "sequence": self.sequences.get((entry, mailed.change_id), 0)},
            template=self.templates.get((booking.app_id, slug)),
            is_entered=self._is_entered(booking, row.recipient, customer),
            also_free=self._also_free(booking) if slug == CANCELLED else (),
            links=self._links(together, booking),
            link_follows=any(map(self.missing_links.is_coming, together)),
            uids=self._uids(together, booking),
        )

    def _uids(self, together: Sequence[Booking], booking: Booking) -> Mapping[UUID, str]:
        shown = [*together, *filter(None, [booking.owner_booking])]
        return {
            each.calendar_uid: uid
            for each in shown
            for entries in self.entries
            if (uid := entries.provider_uid(each))
        }

    def _links(self, together: Sequence[Booking], booking: Booking) -> Mapping[UUID, str]:
        # An owner has the entry of the group.
        shown = [*together, *filter(None, [booking.owner_booking])]
        return {each.calendar_uid: url for each in shown if (url := conference_url(each))}

    def _check_link_is_new(self, row: Delivery) -> None:
        """Raise SkipDelivery if an e-mail has had the link, or if another one is about to."""
        if not self.sent_without_link.intersection(row.content[FOLLOWS]):
            raise SkipDelivery(Delivery.CANCELLED, Message("An earlier e-mail had the link."))
        booking = self.bookings[row.booking_id]
        mailed = MailedBooking(booking, row.change_id, row.version, row.content)
        state = row.change.to_state if row.change else booking.state
        if reason := mailed.changed_reason(state):
            raise SkipDelivery(Delivery.CANCELLED, reason)

    def _also_free(self, booking: Booking) -> Sequence[str]:
        """Return who else of the project is free on the day; of a few days and projects."""
        start, zone = booking.event.start, first_known_zone(booking.resource.timezone)
        day = booking.project_id, booking.resource_id, local_date(start, zone)
        if day not in self.free_by_day and len(self.free_by_day) < MAX_SEARCHED_DAYS:
            names = names_of_others_free(booking, start, now=self.now)
            self.free_by_day[day] = names
        return self.free_by_day.get(day, ())

    def _current_letters(
        self, row: Delivery, own: "MailedBooking", to: Sequence[str]
    ) -> list[Letter]:
        """Return a letter about each booking of an e-mail about several, in order of start.

        Bookings that have changed since are left out. Raises SkipDelivery if none is left.
        """
        message = {"message": row.content["message"]}
        others = [
            MailedBooking(
                self.bookings[UUID(facts["booking_id"])],
                UUID(facts["change_id"]),
                facts["version"],
                facts | message,
            )
            for facts in row.content["others"]
        ]
        reasons, letters = [], []
        for mailed in (own, *others):
            reason = mailed.changed_reason(row.kind)
            customer = mailed.customer_with(to) if row.recipient == CUSTOMER else None
            if reason:
                reasons.append(reason)
            elif customer or row.recipient == OWNER:
                letters.append(self._letter(row, mailed, to, customer))
        if not letters:
            raise SkipDelivery(Delivery.CANCELLED, reasons[0])
        return sorted(letters, key=lambda letter: (letter.starts_at, letter.booking.id))

    def _owner_addresses(self, row: Delivery, app: App, resource: Resource) -> list[str]:
        """Return the owner's addresses; of a further resource of a booking only its own."""
        if row.content.get(OF_COMPANION):
            return [resource.email] if resource.email else []
        return self.addressees.of_owner(app, resource)

    def _without_told(self, row: Delivery, app: App, to: Sequence[str]) -> list[str]:
        """Return the addresses that get no other e-mail about the same move: of a former resource
        those that no present one has, whose calendar would lose the booking. Raises SkipDelivery if
        there are none.
        """
        told: set[str] = set()
        for number, resource_id in enumerate(_other_mailed_resource_ids(row)):
            resource = self.owners_resources[UUID(resource_id)]
            own = self.addressees.of_owner(app, resource) if number == 0 else [resource.email or ""]
            told |= set(map(canonical_address, filter(None, own)))
        left = [address for address in to if canonical_address(address) not in told]
        if to and not left and row.kind == UNASSIGNED:
            raise SkipDelivery(
                Delivery.SKIPPED, Message("The new resource has the same e-mail address.")
            )
        if to and not left:
            raise SkipDelivery(
                Delivery.SKIPPED, Message("Another e-mail to this address is about the same move.")
            )
        return left

    def _password_mail(self, row: Delivery, app: App) -> "ComposedMail":
        resource = self.resources.get(row.content.get("resource_id", ""))
        if resource is None:
            raise SkipDelivery(Delivery.SKIPPED, Message("The recipient has no e-mail address."))
        message = compose_password_mail(
            app=app,
            delivery_id=row.id,
            to=self._usable_addresses(app, [resource.email or ""]),
            url=password_url(resource, row.due_at + LINK_LASTS),
        )
        return ComposedMail(message, copy_subject(message))

    def _code_mail(self, row: Delivery, app: App) -> "ComposedMail":
        unverified = self.unverified.get(row.content.get("reservation_id", ""))
        if unverified is None or unverified.expires_at <= self.now:
            raise SkipDelivery(Delivery.SKIPPED, "The hold has ended.")
        if unverified.code_number != row.content["code_number"]:
            raise SkipDelivery(Delivery.CANCELLED, "A newer code was sent.")
        project = unverified.project
        code = code_of(unverified.id, unverified.code_number)
        message = compose_code_mail(
            app=app,
            delivery_id=row.id,
            to=self._usable_addresses(app, [unverified.email]),
            code=code,
            url=f"{settings.PUBLIC_URL}/book/{quote(project.slug)}?reservation={unverified.id}",
            languages=[unverified.language, project.settings.get("language")],
        )
        return ComposedMail(message, copy_subject(message, secret=code))

    def _invitation_mail(self, row: Delivery, app: App) -> "ComposedMail":
        invitation = self.invitations.get(row.content.get("invitation_id", ""))
        if invitation is None or invitation.sent_at.isoformat() != row.content.get("sent_at"):
            raise SkipDelivery(Delivery.CANCELLED, "The invitation has ended or was sent again.")
        # Of a test app too: the person is about to become a member.
        to = self._without_suppressed(app, [invitation.email])
        message = compose_invitation_mail(
            app=app, delivery_id=row.id, to=to, role=invitation.role, url=invitation_url(invitation)
        )
        return ComposedMail(message, copy_subject(message))

    def _security_mail(self, row: Delivery, app: App) -> "ComposedMail":
        person = row.content.get("email")
        message = compose_security_mail(
            app=app,
            delivery_id=row.id,
            to=self._usable_addresses(app, [person] if person else self.addressees.owners(app)),
            kind=row.kind,
            facts=row.content,
        )
        return ComposedMail(message, copy_subject(message))

    def _calendar_mail(self, row: Delivery, app: App) -> "ComposedMail":
        calendar = self.calendars.get(UUID(row.content["calendar_id"]))
        if calendar is None or CalendarSerializer.get_provider_sync(calendar):
            raise SkipDelivery(Delivery.CANCELLED, Message("The calendar has no problem any more."))
        owner = self.owners_resources[UUID(row.content["resource_id"])]
        message = compose_calendar_mail(
            app=app,
            delivery_id=row.id,
            to=self._usable_addresses(app, self.addressees.of_owner(app, owner)),
            facts=row.content,
        )
        return ComposedMail(message, copy_notice(message))

    def _own_bookings_mail(self, row: Delivery, app: App) -> "ComposedMail":
        booking = self.bookings.get(row.booking_id)
        customers = booking.customers.all() if booking else ()
        customer = next((each for each in customers if each.id == row.customer_id), None)
        if booking is None or customer is None:
            raise SkipDelivery(Delivery.SKIPPED, "Nobody has booked with this address.")
        message = compose_own_bookings_mail(
            app=app,
            delivery_id=row.id,
            to=self._usable_addresses(app, [customer.email]),
            url=own_bookings_url(app, customer.email, nonce=row.id, expires_at=row.expires_at),
            languages=languages_of(booking, customer),
        )
        return ComposedMail(message, copy_subject(message))

    def _usable_addresses(
        self, app: App, addresses: Iterable[str], *, is_reminder: bool = False
    ) -> list[str]:
        """Return the permitted addresses. Raises SkipDelivery if there are none."""
        present = [address for address in addresses if address]
        if not present:
            raise SkipDelivery(Delivery.SKIPPED, Message("The recipient has no e-mail address."))
        allowed = self.addressees.allowed(app, present)
        if not allowed:
            raise SkipDelivery(
                Delivery.SKIPPED, Message("A test app sends e-mails only to its members.")
            )
        return self._without_suppressed(app, allowed, is_reminder=is_reminder)

    def _without_suppressed(
        self, app: App, allowed: Sequence[str], *, is_reminder: bool = False
    ) -> list[str]:
        """Return the addresses that bounced no e-mail. Raises SkipDelivery if there are none."""
        reasons = {
            address: self.suppressions.reason(app, address, is_reminder=is_reminder)
            for address in allowed
        }
        if all(reasons.values()):
            raise SkipDelivery(Delivery.SKIPPED, reasons[allowed[0]])
        return [address for address in allowed if not reasons[address]]

    def _is_entered(self, booking: Booking, recipient: str, customer: Customer | None) -> bool:
        """Return whether the recipient's calendar gets the booking otherwise."""
        if recipient == OWNER:
            return any(entries.is_entered(booking, None) for entries in self.entries)
        return bool(customer) and any(
            entries.is_entered(booking, customer) for entries in self.entries
        )


def _send_and_copy(
    message: EmailMultiAlternatives, app: App, copied: EmailCopy, told: Mapping[UUID, datetime]
) -> SendResult:
    """Send the e-mail; if it may have been sent, its copy is to be stored with the result."""
    result = send_mail(message, app)
    if result.ok or result.is_unconfirmed:
        result.sent_copy = SentCopy(copied.compressed(), told)
    return result


def _send_without_link(send: SendCall, delivery_id: UUID) -> SendResult:
    result = send()
    if result.ok:
        result.keep = partial(mark_sent_without_link, delivery_id)
    return result


def _other_mailed_resource_ids(row: Delivery) -> Sequence[str]:
    """Return the ids of the resources whose addresses get another e-mail about the same move."""
    new = row.content.get("new_resource_id")
    return row.content.get(TOLD_RESOURCES) or ([new] if new else [])


def _with_resource(booking: Booking, resource: Resource) -> Booking:
    """Return an unsaved copy of the booking as it was with this main resource."""
    former = copy.copy(booking)
    former.event = copy.copy(booking.event)
    # Its calendar of that time is not known; None stands for the resource's primary calendar.
    former.event.calendar_id = None  # type: ignore[assignment]
    former.event.resource = former.resource = resource
    return former


def _if_any(rows: Iterable[Read], keys: Collection[object]) -> Iterable[Read]:
    return rows if keys else ()


def _booking_ids(row: Delivery) -> list[UUID]:
    """Return the row's booking, and those that its e-mail carries."""
    others = [UUID(facts["booking_id"]) for facts in row.content.get("others", ())]
    return [row.booking_id, *others] if row.booking_id else []


def _needs_booking(row: Delivery) -> bool:
    """Return whether the row needs its booking; a call about a change has a stored body."""
    return row.type == Delivery.EMAIL or not row.body or row.kind == Delivery.REMINDER


def check_app_is_open(app: App) -> None:
    """Raise SkipDelivery if the app is archived."""
    if app.archived_at:
        raise SkipDelivery(Delivery.SKIPPED, Message("The app is archived."))


def check_reminder_is_current(row: Delivery, booking: Booking) -> None:
    """Raise SkipDelivery for a reminder whose booking was rescheduled or cancelled."""
    if reason := outdated_reminder_reason(row, booking):
        raise SkipDelivery(Delivery.CANCELLED, reason)
