from urllib.parse import parse_qsl, urlsplit

import pytest
from django.http import QueryDict
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from common.api.pagination import Page, list_envelope
from common.errors import Invalid

BASE = "http://127.0.0.1:8000/v2/things"


def request_of(query):
    return RequestFactory().get(f"/v2/things?{query}")


def listing(query, total):
    request = request_of(query)
    page = Page.read(request)
    return list_envelope(request, page, total, list(range(total))[page.start : page.stop])


def test_example_of_the_contract():
    assert listing("limit=3&page=2", 5) == {
        "total": 5,
        "per_page": "3",
        "current_page": 2,
        "last_page": 2,
        "first_page_url": f"{BASE}?limit=3&page=1",
        "last_page_url": f"{BASE}?limit=3&page=2",
        "next_page_url": None,
        "prev_page_url": f"{BASE}?limit=3&page=1",
        "from": 4,
        "to": 5,
        "data": [3, 4],
    }


def test_empty_listing_by_default():
    assert listing("", 0) == {
        "total": 0,
        "per_page": 50,
        "current_page": 1,
        "last_page": 1,
        "first_page_url": f"{BASE}?limit=50&page=1",
        "last_page_url": f"{BASE}?limit=50&page=1",
        "next_page_url": None,
        "prev_page_url": None,
        "from": None,
        "to": None,
        "data": [],
    }


def test_page_past_the_end_keeps_other_parameters():
    assert listing("page=9&search=a%3Ab%26c&limit=2&state=x", 5) == {
        "total": 5,
        "per_page": "2",
        "current_page": 9,
        "last_page": 3,
        "first_page_url": f"{BASE}?search=a%3Ab%26c&state=x&limit=2&page=1",
        "last_page_url": f"{BASE}?search=a%3Ab%26c&state=x&limit=2&page=3",
        "next_page_url": None,
        "prev_page_url": f"{BASE}?search=a%3Ab%26c&state=x&limit=2&page=3",
        "from": None,
        "to": None,
        "data": [],
    }


@pytest.mark.parametrize(
    "value",
    ["0", "-1", "1001", "1e9", "nan", "9" * 5000, "", "%D9%A1", "%2B1", "1.0", "%201", "1&limit=1"],
)
def test_wrong_limit_is_refused(value):
    with pytest.raises(Invalid) as refusal:
        Page.read(request_of(f"limit={value}"))

    assert refusal.value.fields == {"errors": {"limit": ["Must be one integer from 1 to 1000."]}}


@pytest.mark.parametrize("value", ["0", "-1", "1000001", "1e30", "%D9%A1", "", "1&page=2"])
def test_wrong_page_is_refused(value):
    with pytest.raises(Invalid) as refusal:
        Page.read(request_of(f"page={value}"))

    assert refusal.value.fields == {"errors": {"page": ["Must be one integer from 1 to 1000000."]}}


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


@given(
    st.dictionaries(names.filter(lambda n: n not in ("limit", "page", "cursor")), names),
    st.integers(1, 1000),
    st.integers(1, 1_000_000),
    st.integers(0, 3000),
)
def test_urls_round_trip(parameters, limit, number, total):
    query = QueryDict(mutable=True)
    query.update(parameters)
    request = request_of(query.urlencode())

    answer = list_envelope(request, Page(limit, number, str(limit)), total, [])

    for name, page in [("first_page_url", 1), ("last_page_url", answer["last_page"])]:
        parts = urlsplit(answer[name])
        pairs = [*parameters.items(), ("limit", str(limit)), ("page", str(page))]
        assert (parts.path, parse_qsl(parts.query, keep_blank_values=True)) == ("/v2/things", pairs)
