"""Mails of the service itself: about no booking, and in nobody's own words."""

import uuid
from collections.abc import Sequence
from html import escape

from django.core.mail import EmailMultiAlternatives
from django.utils.translation import gettext as _

from apps_config.models import App
from bookings.wording import lines_of, one_line, speaking_language_of
from notifications.mail.envelope import Sender, new_message
from notifications.mail.layout import WAITING, details_html, page
from notifications.mail.letters import as_html, details_text, direction
from notifications.mail.templates import Words, fill


def compose_notice(
    *,
    app: App,
    delivery_id: uuid.UUID,
    to: Sequence[str],
    subject: str,
    sentence: str,
    url: str,
    reason: str,
) -> EmailMultiAlternatives:
    """What happened to the webhook at `url`, and why, to the owners of an app.

    Raises ValueError at a recipient that is no address.
    """
    with speaking_language_of(app) as language:
        rows = [
            (_("Address"), one_line(url, 2048)),
            (_("Reason"), lines_of(reason)),
            (_("App"), one_line(app.name)),
        ]
        sentence = one_line(sentence, 1000)
        html = page(
            tone=WAITING,
            badge=escape(_("Notice")),
            heading="{{ subject }}",
            preheader="{{ sentence }}",
            body='<p class="ink" style="margin:0;">{{ sentence }}</p>\n{{ details }}',
        )
        values = {
            "subject": as_html(one_line(subject)),
            "sentence": as_html(sentence),
            "details": details_html([(label, as_html(value)) for label, value in rows if value]),
            "app": as_html(one_line(app.name)),
            "language": language,
            "direction": direction(),
        }
        words = Words(
            subject=one_line(subject),
            text=f"{sentence}\n\n{details_text([row for row in rows if row[1]])}\n",
            html=fill(html, values),
        )
    return new_message(words, Sender.of(app), delivery_id=delivery_id, to=to)
