"""Mails of the service itself: about no booking, and in nobody's own words."""

import uuid
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from apps_config.models import App, Membership
from bookings.pages.formatting import activate_language_of, clean_lines, to_one_line
from notifications.mail.compose import (
    MailBranding,
    as_html,
    contact_line,
    details_text,
    links_text,
    text_direction,
)
from notifications.mail.defaults import MailWords, fill_placeholders
from notifications.mail.envelope import Sender, new_message
from notifications.mail.html_layout import (
    WAITING,
    Button,
    buttons_html,
    details_html,
    links_html,
    mail_page,
)
from notifications.security_mails import NEW_DEVICE, NEW_KEY, NEW_OWNER
from notifications.webhooks.disabling_reasons import ANSWERED_GONE, NEVER_SUCCEEDED


def compose_webhook_notice(
    *,
    app: App,
    delivery_id: uuid.UUID,
    to: Sequence[str],
    url: str,
    reason: str,
) -> EmailMultiAlternatives:
    """That the webhook at `url` was disabled, and why, to the owners of an app.

    Raises ValueError at a recipient that is no address.
    """
    with activate_language_of(app) as language:
        rows = [
            (_("Address"), to_one_line(url, 2048)),
            (_("Reason"), clean_lines(disabling_reasons().get(reason, reason))),
            (_("App"), to_one_line(app.name)),
        ]
        rows = [(label, value) for label, value in rows if value]
        words = _words(
            app,
            language,
            badge=_("Notice"),
            subject=_("A webhook was disabled"),
            sentence=_("It is not called until you enable it again."),
            rows=rows,
        )
    return new_message(words, Sender.of(app), delivery_id=delivery_id, to=to)


def compose_password_mail(
    *, app: App, delivery_id: uuid.UUID, to: Sequence[str], url: str
) -> EmailMultiAlternatives:
    """The link by which a resource chooses a password. Raises ValueError as above."""
    with activate_language_of(app) as language:
        closing = _("If you did not request this e-mail, ignore it. Your password does not change.")
        words = _words(
            app,
            language,
            badge=_("Password"),
            subject=_("Choose a new password"),
            sentence=_("Use this link to choose a new password. It works once, for one hour."),
            button=Button(_("Choose a password"), url),
            closing=closing,
        )
    return new_message(words, Sender.of(app), delivery_id=delivery_id, to=to)


def compose_invitation_mail(
    *, app: App, delivery_id: uuid.UUID, to: Sequence[str], role: str, url: str
) -> EmailMultiAlternatives:
    """The link by which a person joins an app. Raises ValueError as above."""
    with activate_language_of(app) as language:
        name = to_one_line(app.name)
        closing = _("If you did not expect this e-mail, ignore it: nothing changes.")
        words = _words(
            app,
            language,
            badge=_("Invitation"),
            subject=_("You are invited to join %(app)s") % {"app": name},
            sentence=_(
                "You can join the team of %(app)s as %(role)s. The link works once, for seven days."
            )
            % {"app": name, "role": role_words().get(role, role)},
            button=Button(_("Accept the invitation"), url),
            closing=closing,
        )
    return new_message(words, Sender.of(app), delivery_id=delivery_id, to=to)


def compose_code_mail(
    *,
    app: App,
    delivery_id: uuid.UUID,
    to: Sequence[str],
    code: str,
    url: str,
    languages: Sequence[Any],
) -> EmailMultiAlternatives:
    """The code that verifies a customer's address, in fixed words. Raises ValueError as above."""
    with activate_language_of(app, *languages) as language:
        closing = _("If you did not ask for a booking, ignore this e-mail: nothing is booked.")
        words = _words(
            app,
            language,
            badge=_("Confirm your address"),
            subject=_("Your code: %(code)s") % {"code": code},
            sentence=_("Enter the code %(code)s to complete your booking. It works for 15 minutes.")
            % {"code": code},
            button=Button(_("Enter the code"), url),
            closing=closing,
            lines=contact_line(app),
        )
    return new_message(words, Sender.of(app), delivery_id=delivery_id, to=to)


def compose_own_bookings_mail(
    *,
    app: App,
    delivery_id: uuid.UUID,
    to: Sequence[str],
    url: str,
    languages: Sequence[Any],
) -> EmailMultiAlternatives:
    """The link to a customer's own bookings, in fixed words. Raises ValueError as above."""
    with activate_language_of(app, *languages) as language:
        closing = _("If you did not request this e-mail, ignore it: nothing changes.")
        words = _words(
            app,
            language,
            badge=_("Your bookings"),
            subject=_("Your bookings: %(app)s") % {"app": to_one_line(app.name)},
            sentence=_(
                "Use this link to see and change your bookings. It works once, for 15 minutes."
            ),
            button=Button(_("Show my bookings"), url),
            closing=closing,
            lines=contact_line(app),
        )
    return new_message(words, Sender.of(app), delivery_id=delivery_id, to=to)


def compose_security_mail(
    *, app: App, delivery_id: uuid.UUID, to: Sequence[str], kind: str, facts: Mapping[str, str]
) -> EmailMultiAlternatives:
    """What a security event says. facts: `actor`, `network`, and the values of the kind.

    Raises ValueError as above.
    """
    with activate_language_of(app) as language:
        subject, sentence, button, path = security_texts(app)[kind]
        rows = [
            (_("Key"), facts.get("prefix") and f"{facts['prefix']}…"),
            (_("Owner"), facts.get("member")),
            (_("Account"), facts.get("email")),
            (_("By"), facts["actor"] if kind != NEW_DEVICE else ""),
            (_("Network"), facts["network"]),
            (_("App"), app.name),
        ]
        words = _words(
            app,
            language,
            badge=_("Security"),
            subject=subject,
            sentence=sentence,
            rows=[(label, to_one_line(value)) for label, value in rows if value],
            button=Button(button, f"{settings.PUBLIC_URL}{path}"),
        )
    return new_message(words, Sender.of(app), delivery_id=delivery_id, to=to)


def security_texts(app: App) -> dict[str, tuple[str, str, str, str]]:
    """Kind -> subject, sentence, text of the button, and path of its page in the back office."""
    return {
        NEW_KEY: (
            _("A new key was created"),
            _("If nobody in your team needs this key, revoke it."),
            _("Show the keys"),
            "/admin/apps_config/credential/",
        ),
        NEW_OWNER: (
            _("There is a new owner"),
            _("Owners have full access. If this is a mistake, change the person's role."),
            _("Show the team"),
            f"/admin/apps_config/membership/of/{app.id}/",
        ),
        NEW_DEVICE: (
            _("New log-in to your account"),
            _(
                "Somebody logged in with your account from a new device and network. If it was not"
                " you, change your password: this ends all sessions and access tokens."
            ),
            _("Change the password"),
            "/admin/password_change/",
        ),
    }


def compose_calendar_mail(
    *, app: App, delivery_id: uuid.UUID, to: Sequence[str], facts: Mapping[str, Any]
) -> EmailMultiAlternatives:
    """That calendars of an account are no longer synced. Raises ValueError as above.

    facts: `calendars` (names), `calendar_id` of one of them, `account` or "", and `reason`: a
    sentence of the back office's catalogue.
    """
    with activate_language_of(app) as language:
        rows = [
            (_("Calendar"), ", ".join(facts["calendars"])),
            (_("Account"), facts["account"]),
            (_("Reason"), _(facts["reason"])),
            (_("App"), app.name),
        ]
        path = f"/admin/availability/calendar/{facts['calendar_id']}/change/"
        words = _words(
            app,
            language,
            badge=_("Notice"),
            subject=_("A calendar is no longer read"),
            sentence=_("New events in this calendar do not block time until you connect it again."),
            rows=[(label, to_one_line(value, 1000)) for label, value in rows if value],
            button=Button(_("Show the calendar"), f"{settings.PUBLIC_URL}{path}"),
        )
    return new_message(words, Sender.of(app), delivery_id=delivery_id, to=to)


def disabling_reasons() -> dict[str, str]:
    """Stored reason -> its translation."""
    return {
        ANSWERED_GONE: _("The receiver returned 410 Gone."),
        NEVER_SUCCEEDED: _("No call has succeeded for five days."),
    }


def role_words() -> dict[str, str]:
    return {
        Membership.VIEWER: pgettext("role", "viewer"),
        Membership.EDITOR: pgettext("role", "editor"),
        Membership.OWNER: pgettext("role", "owner"),
    }


def _words(
    app: App,
    language: str,
    *,
    badge: str,
    subject: str,
    sentence: str,
    rows: Sequence[tuple[str, str]] = (),
    button: Button | None = None,
    closing: str = "",
    lines: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (),
) -> MailWords:
    """A mail of one sentence, rows of details, a button, a closing sentence and lines of links."""
    branding = MailBranding(app)
    whole = mail_page(
        tone=WAITING,
        badge=escape(badge),
        heading="{{ subject }}",
        preheader="{{ sentence }}",
        body='<p class="ink" style="margin:0;">{{ sentence }}</p>\n{{ rest }}',
    )
    faint = '<p class="faint" style="margin:20px 0 0;color:#556270;">{}</p>'
    rest = [
        details_html([(label, as_html(value)) for label, value in rows]),
        buttons_html([button] if button else [], color=branding.button),
        faint.format(as_html(closing)) if closing else "",
        links_html(lines),
    ]
    values = branding.html | {
        "subject": as_html(subject),
        "sentence": as_html(sentence),
        "rest": "".join(rest),
        "app": as_html(to_one_line(app.name)),
        "language": language,
        "direction": text_direction(),
    }
    parts = [
        sentence,
        details_text(rows),
        button.url if button else "",
        closing,
        links_text(lines),
        branding.text["footer"],
    ]
    return MailWords(
        subject=subject,
        text="\n\n".join(filter(None, parts)) + "\n",
        html=fill_placeholders(whole, values),
    )
