"""Texts that the back office translates have the same English as their packages' own."""

from itertools import product

import pytest

from apps_config.models import AppNotification, EventNotification
from external_calendars.providers import PROVIDERS
from notifications.mail import PLACEHOLDERS
from office.base.event_notification_words import event_notification_words
from office.calendars.sync_status import provider_words
from office.notifications.email_templates import PLACEHOLDER_WORDS


def test_names_of_providers() -> None:
    names = {name: provider_words(name) for name in PROVIDERS}

    assert names == {name: provider.label for name, provider in PROVIDERS.items()}


def test_placeholders_match_the_mails() -> None:
    assert PLACEHOLDER_WORDS == PLACEHOLDERS


@pytest.mark.parametrize("when_time", [0, 1, 2])
def test_texts_of_reminders_match_their_rows(when_time: int) -> None:
    moments = product(EventNotification.UNIT_SECONDS, ("before", "after"))
    kinds = [
        {"type": "email", "recipient": "customer"},
        {"type": "email", "recipient": "owner", "subject": "Don't forget {it}"},
        {"type": "webhook", "url": "https://shop.example/{id}", "method": "put"},
        {"type": "webhook", "url": "https://shop.example/"},
    ]
    rows = [
        AppNotification(when_time=when_time, when_unit=unit, when_type=side, **kind)
        for (unit, side), kind in product(moments, kinds)
    ]

    assert [event_notification_words(row) for row in rows] == [str(row) for row in rows]
