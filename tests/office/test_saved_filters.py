"""Saved filters of the list of bookings: each account's own, as tabs above the list."""

import html
import re
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client

from apps_config.models import Account, SavedFilter
from office.bookings.saved_filters import MAX_FILTERS
from tests.office.conftest import logged_in, member_of
from tests.queries import Queries
from tests.world import Tenant

pytestmark = pytest.mark.django_db

LIST = "/admin/bookings/booking/"
FILTERS = f"{LIST}filters/"
QUERY = "tab=upcoming&q=Marty&state=confirmed&o=-1"


@pytest.fixture
def editor(tenant: Tenant) -> Account:
    return member_of(tenant, "viewer")


@pytest.fixture
def desk(editor: Account) -> Client:
    return logged_in(editor)


def save(client: Client, name: str = "Marty", query: str = QUERY) -> Any:
    return client.post(FILTERS, {"name": name, "query": query}, follow=True)


def tabs(page: Any) -> list[tuple[str, str, bool]]:
    """(title, link, whether it is the present one) of the tabs above the list."""
    found = re.search(r'<nav id="tabs-items".*?</nav>', page.content.decode(), re.DOTALL)
    assert found
    links = re.findall(r'<a href="([^"]*)" class="([^"]*)"[^>]*>\s*(.*?)\s*</a>', found[0])
    return [(html.unescape(t), html.unescape(link), look == "active") for link, look, t in links]


def notes(page: Any) -> list[str]:
    return [str(message) for message in page.context["messages"]]


def test_a_filter_becomes_a_tab(tenant: Tenant, desk: Client) -> None:
    before = desk.get(f"{LIST}?{QUERY}").content.decode()

    page = save(desk, "Marty <b>", f"{QUERY}&p=2&unknown=1&graph=")

    row = SavedFilter.objects.get()
    plain = [
        ("Upcoming", f"{LIST}?tab=upcoming", False),
        ("Past", f"{LIST}?tab=past", False),
        ("Pending", f"{LIST}?tab=pending", False),
        ("All", LIST, False),
    ]
    assert "Save this filter" in before
    assert (row.app, row.name, row.query) == (tenant.app, "Marty <b>", QUERY)
    assert notes(page) == ["Filter “Marty <b>” saved."]
    assert urlsplit(page.redirect_chain[-1][0]).query == QUERY
    assert tabs(page) == [*plain, ("Marty <b>", f"{LIST}?{QUERY}", True)]
    assert "Save this filter" not in page.content.decode()
    assert "Edit filter “Marty &lt;b&gt;”" in page.content.decode()
    first = tabs(desk.get(f"{LIST}?tab=upcoming"))
    assert [title for title, _, is_active in first if is_active] == ["Upcoming"]


def test_tab_without_filters_cannot_be_saved(desk: Client) -> None:
    pages = [desk.get(path).content.decode() for path in (LIST, f"{LIST}?tab=past")]

    refused = [save(desk, "Empty", query) for query in ("", "tab=past", "unknown=1")]

    assert [("Save this filter" in page) for page in pages] == [False, False]
    assert [notes(page) for page in refused] == [["Set a filter, search or order first."]] * 3
    assert not SavedFilter.objects.exists()


def test_a_filter_is_renamed_and_deleted(desk: Client) -> None:
    save(desk)
    save(desk, "Other", "q=Other")
    row = SavedFilter.objects.get(name="Marty")

    renamed = desk.post(f"{FILTERS}{row.pk}/", {"name": "Marty McFly"}, follow=True)
    taken = desk.post(f"{FILTERS}{row.pk}/", {"name": "Other"}, follow=True)
    deleted = desk.post(f"{FILTERS}{row.pk}/", {"delete": "1", "name": "x"}, follow=True)

    assert notes(renamed) == ["Filter “Marty McFly” renamed."]
    assert notes(taken) == ["You already have a filter “Other”."]
    assert notes(deleted) == ["Filter “Marty McFly” deleted."]
    assert list(SavedFilter.objects.values_list("name", "query")) == [("Other", "q=Other")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "This field is required."),
        ("a\0b", "Null characters are not allowed."),
        ("a\nb", "Enter a name on one line."),
        ("x" * 61, "Ensure this value has at most 60 characters (it has 61)."),
        ("Marty", "You already have a filter “Marty”."),
    ],
)
def test_wrong_name_is_refused(desk: Client, name: str, words: str) -> None:
    save(desk)

    page = save(desk, name, "q=Other")

    assert notes(page) == [words]
    assert SavedFilter.objects.count() == 1


@pytest.mark.parametrize("query", ["q=%00&tab=%ED%A0%80", "q=" + "x" * 5000, "app__id__exact=x"])
def test_every_stored_query_can_be_opened(desk: Client, query: str) -> None:
    page = save(desk, "Odd", query)

    assert page.status_code == 200
    assert all(len(row.query) <= SavedFilter.MAX_QUERY for row in SavedFilter.objects.all())


def test_there_are_at_most_twenty(desk: Client) -> None:
    save(desk, "Filter 0")
    first = SavedFilter.objects.get()
    SavedFilter.objects.bulk_create(
        SavedFilter(account=first.account, app=first.app, name=f"Filter {number}", query="q=x")
        for number in range(1, MAX_FILTERS - 1)
    )

    pages = [save(desk, f"Last {number}", "q=last") for number in range(2)]

    assert notes(pages[0]) != notes(pages[1]) == ["You have 20 filters. Delete one first."]
    assert SavedFilter.objects.count() == MAX_FILTERS


def test_filters_are_per_account(
    tenant: Tenant, make_tenant: Any, desk: Client, editor: Account
) -> None:
    save(desk)
    row = SavedFilter.objects.get()
    colleague = logged_in(member_of(tenant, "owner"))
    former = editor.memberships.get()

    theirs = tabs(colleague.get(LIST))
    refused = colleague.post(f"{FILTERS}{row.pk}/", {"delete": "1"})
    unknown = colleague.post(f"{FILTERS}{uuid.uuid4()}/", {"name": "x"})
    shown = desk.get(f"{FILTERS}{row.pk}/")
    former.app = make_tenant().app
    former.save()
    gone = (tabs(desk.get(LIST)), desk.post(f"{FILTERS}{row.pk}/", {"name": "x"}))

    assert [title for title, *_ in theirs] == ["Upcoming", "Past", "Pending", "All"]
    assert [answer.status_code for answer in (refused, unknown, shown)] == [404, 404, 405]
    assert (len(gone[0]), gone[1].status_code) == (4, 404)
    assert SavedFilter.objects.get().name == "Marty"


def test_filter_of_a_member_of_several_apps(
    tenant: Tenant, make_tenant: Any, editor: Account, desk: Client
) -> None:
    other = make_tenant()
    editor.memberships.create(app=other.app, role="viewer")
    foreign = make_tenant()

    open_page = desk.get(f"{LIST}?q=Marty").content.decode()
    refused = [save(desk), save(desk, query=f"q=x&app__id__exact={foreign.app.pk}")]
    chosen = save(desk, query=f"q=x&app__id__exact={other.app.pk}")

    assert "Filter by one app first" in open_page
    assert [notes(page) for page in refused] == [
        ["Filter by one app before you save the filter."]
    ] * 2
    assert notes(chosen) == ["Filter “Marty” saved."]
    assert parse_qs(SavedFilter.objects.get().query)["app__id__exact"] == [str(other.app.pk)]
    assert SavedFilter.objects.get().app == other.app


def test_query_count_is_constant_with_many_filters(desk: Client) -> None:
    counts = []
    for number in range(3):
        for step in range(number * 3):
            save(desk, f"Filter {number} {step}", f"q={number}-{step}")
        with Queries(connection) as queries:
            desk.get(f"{LIST}?q=unsaved")
        counts.append(len(queries))

    assert len(set(counts)) == 1, counts
