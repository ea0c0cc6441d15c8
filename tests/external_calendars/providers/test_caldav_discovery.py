"""From what a person gives to a calendar: on real servers, and on one that leads astray."""

import base64

import pytest

from external_calendars.providers.base import CalendarAccess, DiscoveredCalendar, ProviderError
from external_calendars.providers.caldav import CalDav
from tests.external_calendars.front import Answer, Front
from tests.external_calendars.servers import CYRUS_DOMAIN, PASSWORD, READER

CALDAV = CalDav()
XML = {"Content-Type": "application/xml"}
INVITES = {"radicale": False, "xandikos": True, "cyrus": True}


def find(address: str, user: str = "ada", password: str = PASSWORD) -> DiscoveredCalendar:
    return CALDAV.find_calendar(CalendarAccess(address, user, password), deadline=30)


def discovery_error(address: str, user: str = "ada", password: str = PASSWORD) -> ProviderError:
    with pytest.raises(ProviderError) as trouble:
        find(address, user, password)
    return trouble.value


# --- Real servers ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [
        "{server}",
        "{server}/",
        "{server}/{user}/",
        "{server}/{user}",
        "{server}{home}",
        "{server}{calendar}",
        "{server}{bare_calendar}",
        "  {server}{calendar}#now ",
        "caldav://{host}{calendar}",
    ],
)
@pytest.mark.matrix
def test_calendar_is_found_from_any_url_of_its_server(server, given):
    calendar = server.make_calendar()
    address = given.format(
        server=server.url,
        host=server.url.removeprefix("http://"),
        user=calendar.user,
        home=server.home(calendar.user),
        calendar=calendar.path,
        bare_calendar=calendar.path.rstrip("/"),
    )

    found = find(address, calendar.user)

    addresses = (f"{calendar.user}@{CYRUS_DOMAIN}",) if server.name == "cyrus" else ()
    assert found == DiscoveredCalendar(calendar.url, "Home", True, INVITES[server.name], addresses)


def test_name_of_the_calendar(xandikos):
    calendar = xandikos.make_calendar()
    body = (
        '<propertyupdate xmlns="DAV:"><set><prop><displayname>Büro &amp; Praxis</displayname>'
        "</prop></set></propertyupdate>"
    )
    calendar.request("PROPPATCH", data=body.encode(), headers=XML).raise_for_status()

    assert find(calendar.url, calendar.user).name == "Büro & Praxis"


def test_wrong_password_is_unauthorized(server):
    calendar = server.make_calendar()

    for address in (server.url, calendar.url):
        trouble = discovery_error(address, calendar.user, "wrong")
        assert (trouble.code, str(trouble)) == (
            "unauthorized",
            "The server refuses this user name and password.",
        )


def test_read_only_user(radicale):
    calendar = radicale.make_calendar()

    assert find(calendar.url, READER) == DiscoveredCalendar(calendar.url, "Home", False, False)


def test_several_calendars_are_named(server):
    calendar = server.make_calendar()
    for number in range(11):
        server.make_calendar(calendar.user, f"c{number:02}")

    trouble = discovery_error(server.url, calendar.user)
    chosen = find(f"{server.url}{server.home(calendar.user)}c03/", calendar.user)

    assert trouble.code == "several_calendars"
    assert str(trouble).startswith("There are several calendars: enter the address of one. ")
    assert str(trouble).count("(http://") == 10
    assert f"({server.url}{server.home(calendar.user)}c0" in str(trouble)
    assert chosen.address.endswith("/c03/")


def test_calendar_without_events_is_refused(radicale):
    calendar = radicale.make_calendar(kinds=("VTODO",))

    one, all_of_them = (
        discovery_error(address, calendar.user) for address in (calendar.url, radicale.url)
    )

    assert (one.code, str(one)) == ("not_a_calendar", "This collection does not support events.")
    assert (all_of_them.code, str(all_of_them)) == (
        "not_a_calendar",
        "This user has no calendar for events.",
    )


def test_unknown_path_is_not_a_calendar(server):
    calendar = server.make_calendar()

    trouble = discovery_error(f"{calendar.url.rstrip('/')}-gone/", calendar.user)

    assert trouble.code == "not_a_calendar"


def test_url_of_a_web_page_finds_the_calendar(server):
    """What a person copies from the browser may well speak no DAV."""
    calendar = server.make_calendar()
    server.front.answer = lambda call: Answer(405) if call.path == "/index.html" else None

    found = find(f"{server.url}/index.html", calendar.user)

    assert found.address == calendar.url


def test_forbidden_well_known_url_falls_back_to_the_root(server):
    calendar = server.make_calendar()
    server.front.answer = lambda call: Answer(403) if "/." in call.path else None

    assert find(server.url, calendar.user).address == calendar.url


# --- Servers that lead on -------------------------------------------------------------------------
def calendar_member(href: str, kinds: str = "") -> str:
    return (
        f"<response><href>{href}</href><propstat><prop><resourcetype><collection/><C:calendar/>"
        f"</resourcetype><displayname>Work</displayname>{kinds}</prop>"
        "<status>HTTP/1.1 200 OK</status></propstat></response>"
    )


def multistatus(*members: str) -> Answer:
    names = 'xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"'
    return Answer(207, f"<multistatus {names}>{''.join(members)}</multistatus>".encode())


def moved(to: str) -> Answer:
    return Answer(301, headers={"Location": to})


def signed(front: Front) -> list[str | None]:
    """Whose password came with each call."""
    headers = [call.headers.get("authorization", "").removeprefix("Basic ") for call in front.calls]
    return [base64.b64decode(pair).decode().partition(":")[0] or None for pair in headers]


def test_redirects_on_the_same_server_are_followed(fake):
    answers = {
        "/.well-known/caldav": moved("/a"),
        "/a": moved("b/"),
        "/b/": moved(f"{fake.url}/cal"),
        "/cal": moved("/cal/"),
        "/cal/": multistatus(calendar_member("/cal/")),
    }
    fake.answer = lambda call: answers[call.path]

    found = find(fake.url)

    # What it may do is not said, so it is tried; nor is what an OPTIONS would.
    assert found == DiscoveredCalendar(f"{fake.url}/cal/", "Work", True, False)
    assert [call.path for call in fake.calls] == [*answers, "/cal/"]
    assert signed(fake) == ["ada"] * 6


def test_endless_redirects_are_refused(fake):
    fake.answer = lambda call: moved(f"{call.path}x")

    trouble = discovery_error(f"{fake.url}/cal/")

    assert trouble.code == "not_a_calendar"
    assert len(fake.calls) == 12  # six there, and six at the well-known address


@pytest.mark.parametrize(
    "to",
    [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00::1]/",
        "http://192.168.1.1:8080/cal/",
        "https://10.0.0.1/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "https://ada:pw@example.com/",
    ],
)
def test_redirect_to_a_refused_address(fake, to):
    fake.answer = lambda call: moved(to)

    trouble = discovery_error(f"{fake.url}/cal/")

    assert trouble.code == "address_refused"
    assert len(fake.calls) == 1


def test_password_is_not_sent_to_another_server_without_https(fake):
    other = Front()
    other.answer = lambda call: multistatus(calendar_member("/cal/"))
    try:
        fake.answer = lambda call: moved(f"{other.url}/cal/")
        redirected = discovery_error(fake.url)
        home = f"<C:calendar-home-set><href>{other.url}/</href></C:calendar-home-set>"
        principal = (
            f"<response><href>/ada/</href><propstat><prop>{home}</prop>"
            "<status>HTTP/1.1 200 OK</status></propstat></response>"
        )
        fake.answer = lambda call: multistatus(principal)
        named = discovery_error(fake.url)
    finally:
        other.stop()

    assert [redirected.code, named.code] == ["address_refused", "address_refused"]
    assert other.calls == []


@pytest.mark.parametrize("path", ["/", "/ada/", "/homes/ada/"])
def test_default_calendar_takes_precedence(fake, path):
    def named(prop: str, href: str) -> str:
        return f"<C:{prop}><href>{href}</href></C:{prop}>"

    def member(href: str, props: str) -> str:
        propstat = f"<propstat><prop>{props}</prop><status>HTTP/1.1 200 OK</status></propstat>"
        return f"<response><href>{href}</href>{propstat}</response>"

    principal = "<current-user-principal><href>/ada/</href></current-user-principal>"
    homes = named("calendar-home-set", "/homes/ada/") + named("schedule-inbox-URL", "/inbox")
    answers = {
        "/.well-known/caldav": moved("/"),
        "/": multistatus(member("/", principal)),
        "/ada/": multistatus(member("/ada/", principal + homes)),
        "/homes/ada/": multistatus(
            member("/homes/ada/", f"<resourcetype><collection/></resourcetype>{principal}"),
            calendar_member("/homes/ada/home/"),
            calendar_member("/homes/ada/work/"),
        ),
        "/inbox": multistatus(
            member("/inbox", named("schedule-default-calendar-URL", "/homes/ada/work"))
        ),
        "/homes/ada/work/": Answer(200, headers={"DAV": "1, Calendar-Auto-Schedule"}),
    }
    fake.answer = lambda call: answers[call.path]

    found = find(f"{fake.url}{path}")

    assert found == DiscoveredCalendar(f"{fake.url}/homes/ada/work/", "Work", True, True)


def test_user_addresses_are_as_the_server_writes_them(fake):
    hrefs = ("mailto:Ada@dav.example.com", "MAILTO:desk@dav.example.com", "/ada/", "urn:uuid:1")
    found = "".join(f"<href>{href}</href>" for href in hrefs)
    addresses = f"<C:calendar-user-address-set>{found}</C:calendar-user-address-set>"
    principal = (
        f"<response><href>/ada/</href><propstat><prop>{addresses}</prop>"
        "<status>HTTP/1.1 200 OK</status></propstat></response>"
    )
    named = "<current-user-principal><href>/ada/</href></current-user-principal>"
    answers = {"/cal/": multistatus(calendar_member("/cal/", named))}
    fake.answer = lambda call: answers.get(call.path, Answer(403))

    unknown = find(f"{fake.url}/cal/")
    answers["/ada/"] = multistatus(principal)
    known = find(f"{fake.url}/cal/")

    assert unknown.user_addresses == ()
    assert known.user_addresses == ("Ada@dav.example.com", "desk@dav.example.com")


def test_members_on_other_servers_are_ignored(fake):
    fake.answer = lambda call: multistatus(
        calendar_member("http://10.0.0.1/cal/"), calendar_member("//example.com/cal/")
    )

    assert discovery_error(fake.url).code == "not_a_calendar"


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("http://10.0.0.1/", "address_refused"),
        ("10.0.0.1", "address_refused"),
        ("http://localhost.:1/", "address_refused"),
        ("ftp://example.com/", "address_refused"),
        ("https://ada:pw@example.com/", "address_refused"),
        ("", "address_refused"),
        ("http://", "address_refused"),
        ("not an address", "address_refused"),
        ("http://127.0.0.1:1/", "unreachable"),
    ],
)
def test_unusable_addresses_are_refused(settings, address, code):
    if "localhost" in address:
        settings.WEBHOOK_ALLOWED_NETWORKS = []

    assert discovery_error(address).code == code


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(401), "unauthorized"),
        (Answer(403), "unauthorized"),
        (Answer(404), "not_a_calendar"),
        (Answer(200, b"<html>Welcome</html>"), "not_a_calendar"),
        (Answer(405), "not_a_calendar"),
        (Answer(501), "not_a_calendar"),
        (Answer(207, b"<html>Welcome</html>"), "not_a_calendar"),
        (Answer(207, b"BEGIN:VCALENDAR"), "not_a_calendar"),
        (Answer(207, b'<multistatus xmlns="DAV:"/>'), "not_a_calendar"),
        (Answer(429), "rate_limited"),
        (Answer(500), "server_error"),
        (Answer(503), "server_error"),
    ],
)
def test_unusable_responses_are_errors(fake, answer, code):
    fake.answer = lambda call: answer

    assert [discovery_error(f"{fake.url}{path}").code for path in ("/", "/cal/")] == [code, code]
