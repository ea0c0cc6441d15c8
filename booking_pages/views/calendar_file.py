"""A booking as a file for the customer's calendar, behind a signed link."""

from collections.abc import Sequence

from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request

from booking_pages.views.rate_limited_page_base import RateLimitedPageView
from bookings.conferences import conference_url
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.pages.action_links import CALENDAR, project_page_path
from bookings.pages.email_links import LinkPageView
from bookings.pages.formatting import activate_language_of, clean_lines, to_one_line
from bookings.pages.translated_texts import customer_text
from bookings.services import ActionNotAllowed
from common.api.fields import NOT_IN_URL, is_web_address
from common.ical.writing import Guest
from notifications.mail.envelope import Sender
from notifications.mail.invitations import Invitation, InvitationEntry, render_invitation


class CalendarFileView(RateLimitedPageView, LinkPageView):
    link_action = CALENDAR

    def get(self, request: Request, booking_id: str) -> HttpResponse:
        booking = self.find_booking(request, booking_id)
        if not GRAPHS[booking.graph].takes_place(booking.state):
            raise ActionNotAllowed(booking, CALENDAR)
        preferred = self.preferred_languages(self.customer)
        with activate_language_of(booking.app, *preferred, *self.languages):
            content = render_invitation(calendar_entry_of(booking))
        headers = {"Content-Disposition": 'attachment; filename="booking.ics"'}
        return HttpResponse(content, content_type="text/calendar; charset=utf-8", headers=headers)

    def page_facts(self) -> Sequence[tuple[str, str]]:
        return ()  # only of refusals, which show a sentence


def calendar_entry_of(booking: Booking) -> Invitation:
    """Return the same entry as the confirmation by e-mail, but without guests."""
    event, sender = booking.event, Sender.of(booking.app)
    start, end = event.dates if event.all_day else (event.start, event.end)
    return Invitation(
        method="PUBLISH",
        occurrences=[
            InvitationEntry(
                booking.calendar_uid, booking.reschedules, start, end, conference_url(booking)
            )
        ],
        what=to_one_line(booking.counted(customer_text(booking, "what"))),
        where=to_one_line(customer_text(booking, "where")),
        description=clean_lines(customer_text(booking, "description")),
        organizer=Guest(sender.name, sender.address),
        guests=(),
        hosts=(),
        url=meeting_or_page_url(booking),
    )


def meeting_or_page_url(booking: Booking) -> str:
    """Return the address at which the booking takes place, else its booking page's; "" without."""
    where = customer_text(booking, "where").strip()
    if is_web_address(where) and not NOT_IN_URL.search(where):
        return where
    path = project_page_path(booking)
    return f"{settings.PUBLIC_URL}{path}" if path else ""
