import pytest

from external_calendars.providers.base import CalendarAccess, ProviderError
from external_calendars.providers.http_session import HttpSession
from external_calendars.providers.urls import (
    full_address,
    normal_etag,
    normal_path,
    path_in_collection,
    to_collection_url,
)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("example.com", "https://example.com/"),
        ("ada@example.com", "https://example.com/"),
        ("example.com:8443/dav", "https://example.com:8443/dav"),
        ("example.com/ada@example.com/", "https://example.com/ada%40example.com/"),
        (" HTTPS://Example.COM:443/a b".replace(" b", "%20b"), "https://example.com/a%20b"),
        ("http://example.com:80/x#y", "http://example.com/x"),
        ("http://example.com:8080", "http://example.com:8080/"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://[2606:4700::1111]:8443/", "https://[2606:4700::1111]:8443/"),
        ("webcal://example.com/a.ics?key=x%2Fy&z", "https://example.com/a.ics?key=x%2Fy&z"),
        ("WebCals://example.com/a.ics", "https://example.com/a.ics"),
        ("caldavs://example.com", "https://example.com/"),
    ],
)
def test_full_address_of_user_input(settings, given, address):
    settings.WEBHOOK_ALLOWED_NETWORKS = []

    assert full_address(given) == address
    assert full_address(address) == address


@pytest.mark.parametrize(
    "given", ["", " ", "a b", "https://", "https://a:b@c/", "ftp://c/", "x" * 3000]
)
def test_wrong_addresses_are_refused(given):
    with pytest.raises(ProviderError) as trouble:
        full_address(given)

    assert trouble.value.code == "address_refused"


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/a/b.ics", "/a/b.ics"),
        ("/a b/ü@x+y", "/a%20b/%C3%BC%40x%2By"),
        ("/a%20b/%c3%bc%40x%2by", "/a%20b/%C3%BC%40x%2By"),
        ("/%7Eada/%2F/%25", "/~ada/%2F/%25"),
        ("/", "/"),
        ("//", "//"),
    ],
)
def test_normal_form_of_paths(path, normal):
    assert normal_path(path) == normal
    assert normal_path(normal) == normal


@pytest.mark.parametrize(
    ("href", "path"),
    [
        ("/ada/home/a.ics", "/ada/home/a.ics"),
        ("/ada/home/%c3%bc.ics", "/ada/home/%C3%BC.ics"),
        ("/ada/home/ü.ics", "/ada/home/%C3%BC.ics"),
        ("a.ics", "/ada/home/a.ics"),
        ("https://example.com/ada/home/a.ics", "/ada/home/a.ics"),
        ("https://EXAMPLE.com:443/ada/home/a.ics", "/ada/home/a.ics"),
        ("/ada/x/../home/a.ics", "/ada/home/a.ics"),
        ("/ada/home/" + "x" * 990, "/ada/home/" + "x" * 990),
        ("/ada/home/" + "x" * 991, None),
        ("/ada/home/", None),
        ("/ada/home", None),
        ("/ada/home/inner/", None),
        ("/ada/home/../other/a.ics", None),
        ("/ada/homes/a.ics", None),
        ("/a.ics", None),
        ("http://example.com/ada/home/a.ics", None),
        ("https://example.org/ada/home/a.ics", None),
        ("//example.org/ada/home/a.ics", None),
        ("https://example.com:8443/ada/home/a.ics", None),
        ("https://[broken/a.ics", None),
        ("", None),
    ],
)
def test_object_path_must_be_in_the_collection(href, path):
    assert path_in_collection("https://example.com/ada/home/", href) == path


def test_collections_end_with_a_slash():
    assert [to_collection_url(url) for url in ("https://a/b", "https://a/b/", "https://a/b?c")] == [
        "https://a/b/"
    ] * 3


@pytest.mark.parametrize(
    ("text", "etag"),
    [
        ('"a"', '"a"'),
        (' W/"a" ', '"a"'),
        ("a", "a"),
        ('"' + "x" * 298 + '"', '"' + "x" * 298 + '"'),
        ('"' + "x" * 299 + '"', ""),
        ('"ü"', ""),
        ('"a\n"', ""),
    ],
)
def test_normal_form_of_etags(text, etag):
    assert normal_etag(text) == etag


@pytest.mark.parametrize(
    ("given", "link", "anyhow", "while_finding"),
    [
        ("https://example.com/", "/cal/", True, True),
        ("https://example.com/", "https://example.com:8443/cal/", True, True),
        ("http://example.com/", "https://example.com/cal/", True, True),
        ("https://example.com/", "https://p7.example.net/cal/", False, True),
        ("https://example.com/", "http://example.com/cal/", False, False),
        ("https://example.com/", "http://example.net/cal/", False, False),
        ("http://example.com/", "https://example.net/cal/", False, False),
        ("http://example.com/", "http://example.com:8443/cal/", False, False),
    ],
)
def test_password_is_sent_only_to_allowed_hosts(settings, given, link, anyhow, while_finding):
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    settings.WEBHOOK_PORTS = [80, 443, 8443]

    visit = HttpSession(CalendarAccess(given, "ada", "x"), 10)
    there = visit.resolve_link(given, link)
    onward = visit.resolve_link(there, there.replace("/cal/", "/dav/"))

    assert visit.authorization_headers(given) == {"Authorization": "Basic YWRhOng="}
    assert (
        bool(visit.authorization_headers(there)),
        bool(visit.authorization_headers(onward)),
    ) == (anyhow, anyhow)

    visit = HttpSession(CalendarAccess(given, "ada", "x"), 10)
    if while_finding:
        assert visit.authorization_headers(
            visit.resolve_link_with_password(given, link)
        ) == visit.authorization_headers(given)
    else:
        with pytest.raises(ProviderError) as trouble:
            visit.resolve_link_with_password(given, link)
        assert trouble.value.code == "address_refused"


def test_host_without_password_cannot_forward_it(settings):
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    visit = HttpSession(CalendarAccess("http://example.com/", "ada", "x"), 10)

    there = visit.resolve_link("http://example.com/", "https://example.net/")

    with pytest.raises(ProviderError):
        visit.resolve_link_with_password(there, "https://example.org/")
    assert visit.authorization_headers("https://example.org/") == {}


def test_redirects_without_a_user_may_go_to_any_server(settings):
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    visit = HttpSession(CalendarAccess("http://example.com/"), 10)

    assert (
        visit.resolve_link_with_password("http://example.com/", "http://example.net")
        == "http://example.net/"
    )
