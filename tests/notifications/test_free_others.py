"""The e-mail about a cancellation names who else of the project is free that day."""

from datetime import datetime
from typing import Any

import pytest

from notifications.outbox.dispatcher import run_dispatcher
from tests.notifications.test_dispatcher import soon
from tests.sinks import MailSink
from tests.world import Tenant, hours

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
LABEL = "Free that day:"


@pytest.fixture
def people(tenant: Tenant) -> list[Any]:
    return [tenant.make_resource(name) for name in ("Ada", "Bob", "Eve")]


def noon() -> datetime:
    return soon(hours=48).replace(hour=12)


def cancelled_mail(tenant: Tenant, mails: MailSink, person: Any, **project: Any) -> list[str]:
    """The row of the customer's e-mail that names who is free; [] without one."""
    start = noon()
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}
    booking = tenant.book(resource_id=person["id"], **times, **project).data
    tenant.put(f"/bookings/{booking['id']}/cancel")
    run_dispatcher("email")
    (mail,) = [each for each in mails.mails if each.subject.startswith("Cancelled")]
    text = mail.message.get_body(("plain",)).get_content()
    return [line.removeprefix(LABEL).strip() for line in text.splitlines() if LABEL in line]


def test_others_of_the_project_who_are_free_are_named(
    tenant: Tenant, mails: MailSink, people: list[Any]
) -> None:
    ada, bob, _eve = people
    project = tenant.make_project(*(person["id"] for person in people))
    day = noon().replace(hour=0)
    tenant.make_event(bob["calendars"][0]["id"], day.isoformat(), (day + hours(24)).isoformat())

    assert cancelled_mail(tenant, mails, ada, project_id=project["id"]) == ["Eve"]


def test_nobody_is_named_of_a_project_without_a_page(
    tenant: Tenant, mails: MailSink, people: list[Any]
) -> None:
    ids = [person["id"] for person in people]
    project = tenant.make_project(*ids, settings={"published": False})

    assert cancelled_mail(tenant, mails, people[0], project_id=project["id"]) == []


def test_nobody_is_named_without_a_project(
    tenant: Tenant, mails: MailSink, people: list[Any]
) -> None:
    assert cancelled_mail(tenant, mails, people[0]) == []
