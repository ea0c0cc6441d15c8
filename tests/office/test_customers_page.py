"""Customers as people: the list, a person's page, export and erasure."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Membership
from bookings.models import AppCustomer, Booking, Customer
from notifications.mail.suppressions import suppress
from office.base.change_list import CappedPaginator
from tests.office.conftest import Enter
from tests.queries import Queries
from tests.world import Tenant

LIST = reverse("admin:bookings_appcustomer_changelist")
ANN = {"name": "Ann Lee", "email": "Ann@example.com", "phone": "+49 40 12345"}

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", timezone="Europe/Berlin")


def book(tenant: Tenant, ada: Any, day: str, **given: Any) -> Any:
    body = {"start": f"{day} 09:00:00", "end": f"{day} 09:30:00", "customer": ANN} | given
    answer = tenant.book(resource_id=ada["id"], **body)
    assert answer.status == 201, answer.json
    return answer.data


def person(tenant: Tenant, email: str = "ann@example.com") -> AppCustomer:
    return AppCustomer.objects.get(app=tenant.app, address=email)


def page_of(row: AppCustomer, name: str = "change") -> str:
    return reverse(f"admin:bookings_appcustomer_{name}", args=[row.pk])


def shown(client: Client, **query: str) -> list[list[str]]:
    """The list's rows: name, e-mail, bookings, last, next, no-shows, mail problem."""
    page = client.get(LIST, query)
    admin = page.context["cl"].model_admin
    names = ("name", "email", "last", "next", "no_shows", "mail_problem")
    with timezone.override("Europe/Berlin"):
        return [
            [str(getattr(admin, name)(row)) for name in names] + [str(row.bookings)]
            for row in page.context["cl"].result_list
        ]


def test_person_is_one_row(tenant: Tenant, ada: Any, enter: Enter) -> None:
    past = book(tenant, ada, "2026-11-02")
    book(tenant, ada, "2026-11-12", customer=ANN | {"name": "Ann", "email": "ann@EXAMPLE.com"})
    book(tenant, ada, "2026-12-01")
    off = book(tenant, ada, "2026-11-25")
    tenant.put(f"/bookings/{off['id']}/cancel")
    book(tenant, ada, "2026-11-30", customer={"name": "Bob", "email": "bob@example.com"})
    Booking.objects.filter(pk=past["id"]).update(outcome="no_show")
    suppress(tenant.app, "ann@example.com", "bounced", now=timezone.now())
    Tenant("other")

    rows = shown(enter(tenant, "viewer"))

    last, following = "Thu 12 Nov 2026, 09:00 CET", "Tue 1 Dec 2026, 09:00 CET"
    of_ann = ["Ann Lee", "Ann@example.com", last, following, "1", "e-mails bounce", "4"]
    of_bob = ["Bob", "bob@example.com", "", "Mon 30 Nov 2026, 09:00 CET", "", "", "1"]
    assert sorted(rows) == [of_ann, of_bob]


def test_lookalike_addresses_are_two_rows(tenant: Tenant, ada: Any, enter: Enter) -> None:
    """PostgreSQL: UPPER('ı') = 'I'."""
    victim = {"name": "Victim", "email": "victim@gmail.com", "phone": "+49 40 777"}
    book(tenant, ada, "2026-12-01", customer=victim)
    for day in ("2026-12-02", "2026-12-03"):
        stranger = {"name": "Stranger", "email": "victim@gmaıl.com"}
        book(tenant, ada, day, customer=stranger)
    client = enter(tenant, Membership.EDITOR)
    row = person(tenant, "victim@xn--gmal-nza.com")

    rows = shown(client)
    page = client.get(page_of(row)).content.decode()
    client.post(page_of(row, "erase"))

    assert sorted([*each[:2], each[-1]] for each in rows) == [
        ["Stranger", "victim@gmaıl.com", "2"],
        ["Victim", "victim@gmail.com", "1"],
    ]
    assert ("Stranger" in page, "+49 40 777" in page) == (True, False)
    assert list(Customer.objects.exclude(email="").values_list("name", "phone")) == [
        ("Victim", "+49 40 777")
    ]


def test_spellings_of_a_domain_are_one_row(tenant: Tenant, ada: Any, enter: Enter) -> None:
    for day, email in (("2026-12-01", "u@xn--mller-kva.de"), ("2026-12-02", "U@müller.de")):
        book(tenant, ada, day, customer={"name": "U", "email": email})
    suppress(tenant.app, "u@MÜLLER.de", "bounced", now=timezone.now())
    client = enter(tenant, Membership.EDITOR)

    rows = shown(client)
    found = [shown(client, q=term) for term in ("u@xn--mller-kva.de", "u@MÜLLER.de")]
    client.post(page_of(person(tenant, "u@xn--mller-kva.de"), "erase"))

    assert [[*each[:2], *each[-2:]] for each in rows] == [
        ["U", "U@müller.de", "e-mails bounce", "2"]
    ]
    assert found == [rows, rows]
    assert list(Customer.objects.values_list("email", flat=True)) == ["", ""]


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("lee ann", ["Ann Lee"]),
        ("ANN@", ["Ann Lee"]),
        ("040/123 45", []),
        ("40 123-45", ["Ann Lee"]),
        ("b", ["Bob"]),
        ("nobody", []),
    ],
)
def test_search_for_a_person(
    tenant: Tenant, ada: Any, enter: Enter, term: str, found: list[str]
) -> None:
    book(tenant, ada, "2026-11-25")
    book(tenant, ada, "2026-11-26", customer={"name": "Bob", "email": "x@other.org"})

    assert [row[0] for row in shown(enter(tenant), q=term)] == found


def test_customers_are_filtered_by_no_shows_and_mail_problems(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    """In their own app: the other app has the same addresses without problems."""
    other = Tenant("other")
    for owner, resource in ((tenant, ada), (other, other.make_resource("Bob"))):
        for day, name in enumerate(("Ann", "Bob", "Cleo"), 2):
            customer = {"name": name, "email": f"{name}@example.com"}
            book(owner, resource, f"2026-11-0{day}", customer=customer)
    missed = Booking.objects.filter(app=tenant.app, customers__name__in=("Ann", "Bob"))
    missed.update(outcome="no_show")
    Booking.objects.filter(app=tenant.app, customers__name="Bob").update(deleted_at=timezone.now())
    suppress(tenant.app, "ann@example.com", "bounced", now=timezone.now())
    suppress(tenant.app, "cleo@example.com", "unsubscribed", now=timezone.now())
    viewer, staff = enter(tenant, "viewer"), enter()

    def found(client: Client, **query: str) -> list[str]:
        rows = client.get(LIST, query).context["cl"].result_list
        return sorted(f"{row.facts.name} {row.app.slug}" for row in rows)

    own = tenant.app.slug
    assert found(viewer, no_shows="yes") == [f"Ann {own}"]
    assert found(viewer, mail_problem="yes") == [f"Ann {own}", f"Cleo {own}"]
    assert found(viewer, mail_problem="bounced") == [f"Ann {own}"]
    assert found(viewer, mail_problem="unsubscribed") == [f"Cleo {own}"]
    assert found(viewer, no_shows="yes", mail_problem="unsubscribed") == []
    assert found(staff, no_shows="yes") == [f"Ann {own}"]
    assert found(staff, no_shows="yes", app__id__exact=str(other.app.pk)) == []
    assert found(staff, mail_problem="yes", app__id__exact=str(tenant.app.pk)) == [
        *(f"Ann {own}", f"Cleo {own}")
    ]
    assert len(found(viewer, no_shows="what")) == 2


def test_a_filter_of_customers_reads_the_newest_rows(
    tenant: Tenant, ada: Any, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in (2, 3, 4):
        customer = {"name": f"Ann {day}", "email": f"ann{day}@example.com"}
        book(tenant, ada, f"2026-11-0{day}", customer=customer)
    Booking.objects.update(outcome="no_show")
    client = enter(tenant)

    monkeypatch.setattr(CappedPaginator, "MOST", 2)

    assert sorted(row[0] for row in shown(client, no_shows="yes")) == ["Ann 3", "Ann 4"]


def test_the_page_of_a_person(tenant: Tenant, ada: Any, enter: Enter) -> None:
    book(tenant, ada, "2026-11-02", what="First visit")
    booking = book(tenant, ada, "2026-12-01", what="Second visit")
    cancelled = book(tenant, ada, "2026-12-02", what="Cancelled visit")
    tenant.put(f"/bookings/{cancelled['id']}/cancel")
    client = enter(tenant, Membership.VIEWER)

    of_booking = client.get(reverse("admin:bookings_booking_change", args=[booking["id"]]))
    page = client.get(page_of(person(tenant)))

    context = page.context
    assert f'href="{page_of(person(tenant))}"' in of_booking.content.decode()
    assert (context["title"], context["email"]) == ("Ann Lee", "Ann@example.com")
    assert [line["who"] for line in context["upcoming"]] == ["Second visit"]
    assert [line["who"] for line in context["history"]] == ["Cancelled visit", "First visit"]
    assert "Erase data" not in page.content.decode()


def test_links_to_a_new_booking_and_the_e_mails(tenant: Tenant, ada: Any, enter: Enter) -> None:
    book(tenant, ada, "2026-11-12")
    book(tenant, ada, "2026-11-13", customer={"name": "Bob", "email": "bob@example.com"})
    page = page_of(person(tenant))
    client = enter(tenant)
    context = client.get(page).context
    seen = enter(tenant, Membership.VIEWER).get(page).context
    mails = client.get(context["mails"]).context["cl"].result_list
    names = {person.name for mail in mails for person in mail.booking.customers.all()}

    new = f"/admin/calendar/?app={tenant.app.id}&new=1&customer=Ann%40example.com"
    assert (context["new_booking"], context["may_make"], seen["may_make"]) == (new, True, False)
    assert (len(mails), names, seen["may_see_mails"]) == (2, {"Ann Lee"}, True)


def test_no_column_is_marked_as_sorted_by_default(tenant: Tenant, ada: Any, enter: Enter) -> None:
    book(tenant, ada, "2026-11-02")
    client = enter(tenant)

    marked = [
        "sortremove" in client.get(LIST, query).content.decode() for query in ({}, {"o": "1"})
    ]

    assert marked == [False, True]


def test_no_show_has_the_danger_colour(tenant: Tenant, ada: Any, enter: Enter) -> None:
    for day, outcome in (("2026-11-02", "attended"), ("2026-11-03", "no_show")):
        past = book(tenant, ada, day)
        Booking.objects.filter(pk=past["id"]).update(outcome=outcome)

    history = enter(tenant).get(page_of(person(tenant))).context["history"]

    assert [(line["state"], line["colour"]) for line in history] == [
        ("no show", "danger"),
        ("attended", "success"),
    ]


def test_export_equals_the_api(tenant: Tenant, ada: Any, enter: Enter) -> None:
    book(tenant, ada, "2026-12-01")

    answer = enter(tenant, Membership.VIEWER).get(page_of(person(tenant), "export"))

    own = json.loads(b"".join(answer.streaming_content))
    of_api = tenant.get("/customers/export?email=ann@example.com", **{"Service-Timezone": "UTC"})
    assert answer.headers["Content-Disposition"] == 'attachment; filename="customer.json"'
    assert own["data"].keys() == of_api.data.keys()
    assert len(own["data"]["bookings"]) == 1


def test_erase_after_confirmation_with_name(tenant: Tenant, ada: Any, enter: Enter) -> None:
    book(tenant, ada, "2026-12-01")
    row = person(tenant)
    client = enter(tenant, Membership.EDITOR)

    question = client.get(page_of(row, "erase"))
    before = list(Customer.objects.values_list("name", flat=True))
    answer = client.post(page_of(row, "erase"), follow=True)

    assert question.context["title"] == "Erase the data of Ann Lee?"
    assert question.context["button"] == "Erase Ann Lee"
    assert "Tue 1 Dec 2026, 09:00 CET" in question.context["lines"][1]
    assert before == ["Ann Lee"]
    assert answer.redirect_chain == [(LIST, 302)]
    assert list(Customer.objects.values_list("name", "email")) == [("", "")]
    assert list(AppCustomer.objects.filter(app=tenant.app)) == []


def test_permissions_of_each_role(tenant: Tenant, ada: Any, enter: Enter) -> None:
    book(tenant, ada, "2026-12-01")
    row = person(tenant)
    foreign = Tenant("other")

    codes = [
        enter(tenant, Membership.VIEWER).post(page_of(row, "erase")).status_code,
        enter(foreign, Membership.OWNER).get(page_of(row)).status_code,
        enter(foreign, Membership.EDITOR).get(page_of(row, "export")).status_code,
        enter(foreign, Membership.VIEWER).post(page_of(row, "erase")).status_code,
        enter().get(reverse("admin:bookings_appcustomer_change", args=["x"])).status_code,
    ]

    assert codes == [403, 404, 404, 403, 404]
    assert Customer.objects.get().name == "Ann Lee"


def test_query_count_is_constant(tenant: Tenant, ada: Any, enter: Enter) -> None:
    client = enter(tenant)
    counts = []
    for number in (1, 3):
        for day in range(9 + number, 9 + 2 * number):
            book(tenant, ada, f"2026-11-{day}")
            book(tenant, ada, f"2026-12-{day}")
            given = {"name": "Bob", "email": f"bob-{day}@example.com"}
            book(tenant, ada, f"2027-01-{day}", customer=given)
        pages = [LIST, page_of(person(tenant))]
        for path in pages:
            client.get(path)
        with Queries(connection) as queries:
            for path in pages:
                assert client.get(path).status_code == 200
        counts.append(len(queries))

    assert counts == [counts[0]] * 2
