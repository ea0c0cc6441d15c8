"""Event notifications (reminders) in words, the same on the server and in `reminders.js`."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from apps_config.models import EventNotification
from office.base.script_words import Plural, ScriptWords

# When a notification is sent: unit and side of the start -> words.
MOMENTS = {
    "secs_before": Plural("{count} second before the start", "{count} seconds before the start"),
    "secs_after": Plural("{count} second after the start", "{count} seconds after the start"),
    "mins_before": Plural("{count} minute before the start", "{count} minutes before the start"),
    "mins_after": Plural("{count} minute after the start", "{count} minutes after the start"),
    "hours_before": Plural("{count} hour before the start", "{count} hours before the start"),
    "hours_after": Plural("{count} hour after the start", "{count} hours after the start"),
    "days_before": Plural("{count} day before the start", "{count} days before the start"),
    "days_after": Plural("{count} day after the start", "{count} days after the start"),
}
# What is sent, and to whom.
MESSAGES = {
    # Translators: {when} is such as "2 hours before the start" or "at the start".
    "email_customer": _("{when}, e-mail to the customer"),
    "email_owner": _("{when}, e-mail to the owner"),
    # Translators: nobody is chosen yet.
    "email_": _("{when}, e-mail to the …"),
    "email_customer_subject": _("{when}, e-mail “{subject}” to the customer"),
    "email_owner_subject": _("{when}, e-mail “{subject}” to the owner"),
    "email__subject": _("{when}, e-mail “{subject}” to the …"),
    # Translators: such as "at the start, POST to https://shop.example/hook".
    "webhook": _("{when}, {method} to {url}"),
}
AT_THE_START = _("at the start")
SCRIPT_WORDS: ScriptWords = {
    "reminders": {
        **MOMENTS,
        **MESSAGES,
        "at_the_start": AT_THE_START,
        "up": _("Move this reminder up"),
        "down": _("Move this reminder down"),
    }
}


def event_notification_words(row: EventNotification) -> str:
    """Return `1 hour before the start, e-mail to the customer`."""
    when = str(AT_THE_START)
    if row.when_time:
        moment = MOMENTS[f"{row.when_unit}_{row.when_type}"]
        when = ngettext(*moment, row.when_time).format(count=row.when_time)
    if row.type == EventNotification.WEBHOOK:
        method = (row.method or "post").upper()
        return str(MESSAGES["webhook"]).format(when=when, method=method, url=row.url)
    name = f"email_{row.recipient}{'_subject' if row.subject else ''}"
    return str(MESSAGES[name]).format(when=when, subject=row.subject)
