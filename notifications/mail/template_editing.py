"""Template overrides: change, read, preview."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from apps_config.models import App
from availability.conferences import TEMPLATE
from availability.models import Event, Resource
from bookings.conferences import conference_url
from bookings.models import Booking, Customer
from bookings.pages.action_links import PAY, payment_address, unsigned_action_url
from bookings.pages.formatting import activate_language_of, first_known_zone, languages_of
from common.time.instants import format_stamp, local_date, wall_to_utc_or_gap_end
from notifications.mail import (
    Letter,
    MailWords,
    WrittenMail,
    default_mail_words,
    default_written_mail,
    merge_override,
    render_mail,
)
from notifications.models import EmailTemplate

PARTS = ("subject", "text", "html")
WRITTEN = ("heading", "body")  # text and HTML are made from them
# In which state and graph the made-up booking of a preview stands, so that all of a mail shows.
EXAMPLE_STATES = {
    "tentative": "tentative",
    "declined": "declined",
    "unpaid": "unpaid",
    "cancelled": "cancelled",
}
EXAMPLE_LINK = "https://video.example.com/check-up"
EXAMPLE_ID = uuid.UUID("0193a4c2-0000-7000-8000-000000000030")


def change_override(app: App, slug: str, given: Mapping[str, str | None]) -> EmailTemplate | None:
    """Replace the given PARTS or WRITTEN parts of the override; a part of None deletes the
    override.

    Parts that were never given stay blank: the service's texts apply.
    """
    own = EmailTemplate.objects.filter(app=app, slug=slug).first()
    if not given:
        return own
    if None in given.values():
        EmailTemplate.objects.filter(app=app, slug=slug).delete()
        return None
    changed = _changed_columns(app, own, given)
    template, _ = EmailTemplate.objects.update_or_create(app=app, slug=slug, defaults=changed)
    return template


def _changed_columns(
    app: App, own: EmailTemplate | None, given: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return the columns to store: a template has heading and body, or its own text and HTML."""
    if given.keys() & set(WRITTEN):
        return {"text": "", "html": "", **given}
    if own and own.is_written and given.keys() & {"text", "html"}:
        with activate_language_of(app):
            words = merge_override(own, default_mail_words(own.slug))
        return {"text": words.text, "html": words.html, "heading": "", "body": "", **given}
    return dict(given)


def written_mail(app: App, slug: str, own: EmailTemplate | None) -> WrittenMail | None:
    """Return heading and body as they apply at present, in the app's language; None if the app has
    its own text or HTML.
    """
    if own and not own.is_written and (own.text or own.html):
        return None
    with activate_language_of(app):
        default = default_written_mail(slug)
    if own is None:
        return default
    return WrittenMail(own.heading or default.heading, own.body or default.body)


def template_record(app: App, slug: str, own: EmailTemplate | None) -> dict[str, Any]:
    """Return the record of the texts that apply at present, in the app's language."""
    with activate_language_of(app):
        words = merge_override(own, default_mail_words(slug))
    return {
        "slug": slug,
        **words._asdict(),
        "custom": own is not None,
        "updated_at": format_stamp(own.updated_at) if own else None,
    }


def preview_mail(
    app: App, slug: str, given: Mapping[str, str], booking: Booking | None, *, now: datetime
) -> MailWords:
    """Return a mail of this kind with the given parts in place of the app's.

    The links have no valid signature: a person who can see templates must not be able to act for an
    owner.
    """
    own = EmailTemplate.objects.filter(app=app, slug=slug).first()
    kept = {part: getattr(own, part, "") for part in (*PARTS, *WRITTEN)}
    typed = {part: text for part, text in given.items() if text or part in WRITTEN}
    template = EmailTemplate(app=app, slug=slug, **{**kept, **_changed_columns(app, own, typed)})
    letter = (
        letter_for_booking(booking, slug, template)
        if booking
        else example_letter(app, slug, template, now)
    )
    with activate_language_of(app) as language:
        return render_mail(letter, language=language, link=_preview_link)


def preview_change(
    booking: Booking, slug: str, facts: Mapping[str, Any], *, also_free: Sequence[str] = ()
) -> MailWords:
    """Return the mail to the first customer about a change that is not made yet, in the customer's
    language, without valid links. facts, also_free: as in Letter.
    """
    own = EmailTemplate.objects.filter(app=booking.app, slug=slug).first()
    letter = _letter(booking, slug, list(booking.customers.all()), own, facts)
    letter = replace(letter, also_free=also_free)
    with activate_language_of(booking.app, *languages_of(booking, letter.customer)) as language:
        return render_mail(letter, language=language, link=_preview_link)


def _preview_link(booking: Booking, action: str, event_end: datetime) -> str:
    if action == PAY:
        return payment_address(booking)
    return f"{unsigned_action_url(booking, action)}?signature=preview"


def letter_for_booking(booking: Booking, slug: str, template: EmailTemplate) -> Letter:
    return _letter(booking, slug, list(booking.customers.all()), template, {})


def example_letter(app: App, slug: str, template: EmailTemplate, now: datetime) -> Letter:
    """Return a letter about a made-up booking next Monday at nine, with a value for every
    placeholder.
    """
    zone_name = first_known_zone(app.default_timezone)
    today = local_date(now, zone_name)
    monday = today + timedelta(days=7 - today.weekday())
    start = wall_to_utc_or_gap_end(datetime(monday.year, monday.month, monday.day, 9), zone_name)
    resource = Resource(app=app, name="Ada Lovelace", timezone=zone_name)
    event = Event(
        app=app,
        resource=resource,
        start=start,
        end=start + timedelta(minutes=30),
        what="Check-up",
        where="Harbour Street 5",
        description="Please come ten minutes early.",
    )
    if slug.startswith("conference"):
        event.conference_provider, event.conference_url = TEMPLATE, EXAMPLE_LINK
    state = EXAMPLE_STATES.get(slug.split("_")[0], "confirmed")
    booking = Booking(
        id=EXAMPLE_ID,
        calendar_uid=EXAMPLE_ID,
        app=app,
        resource=resource,
        event=event,
        graph="confirm_decline",
        state=state,
    )
    customer = Customer(
        app=app,
        booking=booking,
        name="Marty McFly",
        email="marty@example.com",
        phone="+1 555 0100",
    )
    facts: dict[str, Any] = {"message": "Thank you for your patience."}
    if slug.startswith("rescheduled"):
        day = timedelta(days=1)
        facts["old_start"] = (start - day).astimezone(UTC).isoformat()
        facts["old_end"] = (event.end - day).astimezone(UTC).isoformat()
    if slug.startswith(("reassigned", "unassigned")):
        facts |= {"resources": [resource.name], "old_resources": ["Grace Hopper"]}
    return _letter(booking, slug, [customer], template, facts)


def _letter(
    booking: Booking,
    slug: str,
    customers: list[Customer],
    template: EmailTemplate | None,
    facts: Mapping[str, Any],
) -> Letter:
    recipient = slug.rpartition("_")[2]
    return Letter(
        slug=slug,
        delivery_id=booking.id,
        booking=booking,
        recipient=recipient,
        to=(),
        customers=customers,
        customer=customers[0] if customers and recipient == "customer" else None,
        facts=facts,
        template=template,
        links={booking.calendar_uid: url} if (url := conference_url(booking)) else {},
    )
