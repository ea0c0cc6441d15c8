"""sdk/python: what is sent, how often, and what is made of answers; no service is needed."""

import asyncio
import inspect
import json
import pickle
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from scheduling_client import (
    AsyncClient,
    ChangesPage,
    Client,
    ConnectionFailed,
    Refused,
    Retries,
    errors,
)
from scheduling_client import models as answers
from scheduling_client.core import retry_after

from tests.services import ROOT

DOCUMENT = json.loads((ROOT / "docs" / "openapi.json").read_text())
BOOKING = {
    "id": "0193a4c2-0000-7000-8000-000000000030",
    "state": "confirmed",
    "graph": "instant",
    "completed": False,
    "created_at": "2026-11-20T09:30:00+0000",
    "updated_at": "2026-11-20T09:30:00+0000",
    "start": "2026-11-23T09:00:00+01:00",
}
LOST = httpx.ConnectError("Connection refused")
BERLIN = timezone(timedelta(hours=1))


def booked() -> httpx.Response:
    return httpx.Response(201, json={"data": BOOKING})


def busy() -> httpx.Response:
    body = {"error": "Try again.", "code": "unavailable", "request_id": "r1"}
    return httpx.Response(503, json=body)


class Server:
    """Answers in this order, without a network; keeps the requests and the client's waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[httpx.Response | httpx.TransportError] = []
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []
        monkeypatch.setattr("scheduling_client.core.random.uniform", lambda low, high: high)
        monkeypatch.setattr("scheduling_client.client.time.sleep", self.waits.append)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, httpx.TransportError):
            raise answer
        return answer

    def client(self, **options: Any) -> Client:
        http = httpx.Client(transport=httpx.MockTransport(self.answer))
        return Client("https://booking.example.com/v2/", "live_api_key_1", http=http, **options)

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("Idempotency-Key") for request in self.requests]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_whole_request(server: Server) -> None:
    server.answers = [booked()]
    client = server.client(app="harbour", timezone="Europe/Berlin")

    booking = client.bookings.create(
        resource_id="1",
        start=datetime(2026, 11, 23, 9, tzinfo=BERLIN),
        end=datetime(2026, 11, 23, 10),
        meta={"class_": [date(2026, 11, 23)]},
        include=["event", "customers"],
        idempotency_key="mine",
    )

    (request,) = server.requests
    sent = {name: request.headers.get(name) for name in ("Authorization", "Idempotency-Key")}
    sent |= {name: request.headers.get(name) for name in ("Service-App", "Service-Timezone")}
    assert (request.method, str(request.url)) == (
        "POST",
        "https://booking.example.com/v2/bookings?include=event%2Ccustomers",
    )
    assert sent == {
        "Authorization": "Bearer live_api_key_1",
        "Idempotency-Key": "mine",
        "Service-App": "harbour",
        "Service-Timezone": "Europe/Berlin",
    }
    assert request.headers["Prefer"] == "handling=strict"
    assert json.loads(request.content) == {
        "resource_id": "1",
        "start": "2026-11-23T09:00:00+01:00",
        "end": "2026-11-23 10:00:00",
        "meta": {"class_": ["2026-11-23"]},
    }
    assert booking.start == datetime(2026, 11, 23, 8, tzinfo=UTC)
    assert booking.created_at == datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    assert (booking.customers, booking.to_dict()) == (None, BOOKING)


def test_from_is_an_argument(server: Server) -> None:
    server.answers = [httpx.Response(200, json={"data": []})]

    slots = server.client().availability.search(project_id="1", from_=date(2026, 11, 23))

    assert slots == []
    assert json.loads(server.requests[0].content) == {"project_id": "1", "from": "2026-11-23"}
    assert server.keys == [None]


def test_misspelt_keys_are_sent_without_strictness(server: Server) -> None:
    server.answers = [booked()]

    server.client(strict=False).bookings.cancel("1/../2", message="Ill")

    (request,) = server.requests
    assert request.url.raw_path == b"/v2/bookings/1%2F..%2F2/cancel"
    assert json.loads(request.content) == {"cancel": {"message": "Ill"}}
    assert "Prefer" not in request.headers


def test_query_in_a_path_is_sent(server: Server) -> None:
    server.answers = [httpx.Response(200, json={}), httpx.Response(200, json={})]
    client = server.client()

    client.request("GET", "/v2/projects?search=name:A%26B&limit=1")
    client.request("GET", "/v2/projects?limit=1", query={"limit": 2, "page": 3})

    assert [str(request.url.query, "ascii") for request in server.requests] == [
        "search=name%3AA%26B&limit=1",
        "limit=2&page=3",
    ]


@pytest.mark.parametrize("id_", ["", ".", "..", None])
def test_what_is_no_id_does_not_address_another_path(server: Server, id_: Any) -> None:
    with pytest.raises(ValueError, match="is no id"):
        server.client().bookings.delete(id_)

    assert server.requests == []


def test_parameters_of_a_list_that_are_none_are_left_out(server: Server) -> None:
    server.answers = [httpx.Response(200, json={"data": [BOOKING], "next_cursor": None})]
    query: Any = {"cursor": None, "page": None, "limit": None, "state": None}

    assert len(list(server.client().bookings.list(**query))) == 1

    assert dict(server.requests[0].url.params) == {"cursor": "", "limit": "100"}


@pytest.mark.parametrize("key", ["live_api_key_1\n", " live_api_key_1", "live_api_key_…"])
def test_key_that_no_header_takes_is_refused_without_showing_it(key: str) -> None:
    """httpx would show it in the error of each request."""
    with pytest.raises(ValueError, match=r"^The key has a character that no key has") as refused:
        Client("https://booking.example.com", key)

    assert "live" not in str(refused.value)


def test_repr_shows_no_secrets() -> None:
    webhook = {"id": "1", "secret": "whsec_1", "url": "https://example.com", "secret_shown": False}

    texts = [
        repr(answers.Webhook(webhook)),
        repr(answers.Credential({"key": "live_api_key_1"})),
        repr(answers.Resource({"api_token": "resource_key_1"})),
        repr(answers.App({"signing_secret": "whsec_2"})),
    ]

    assert texts == [
        "Webhook(id='1', url='https://example.com', secret='...', secret_shown=False)",
        "Credential(key='...')",
        "Resource(api_token='...')",
        "App(signing_secret='...')",
    ]


def test_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match=r"begins with https:// or http://: 'booking.example.com'"):
        Client("booking.example.com", "key")


# --- Repeated requests ----------------------------------------------------------------------------
def test_repeated_write_keeps_its_key(server: Server) -> None:
    server.answers = [LOST, httpx.ReadTimeout("Too slow"), busy(), booked(), booked()]
    client = server.client()

    client.bookings.create(resource_id="1")
    client.bookings.create(resource_id="1")

    first, second = server.keys[0], server.keys[-1]
    assert server.keys == [first] * 4 + [second]
    assert first != second
    assert server.waits == [0.5, 1.0, 2.0]


def test_retry_after_is_kept(server: Server) -> None:
    at = datetime.now(UTC) + timedelta(seconds=1000)
    limited = {"error": "Too many requests.", "code": "rate_limited", "request_id": "r2"}
    server.answers = [
        httpx.Response(429, json=limited, headers={"Retry-After": "7"}),
        httpx.Response(429, json=limited, headers={"Retry-After": format_datetime(at, True)}),
        booked(),
    ]

    server.client(retries=Retries(seconds=2000)).bookings.get("1")

    assert server.waits[0] == 7
    assert 990 < server.waits[1] <= 1000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("120", 120.0), ("", None), ("soon", None), ("-1", None), ("1.5", None)],
)
def test_retry_after_of_seconds(text: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": text}) == seconds


def test_date_of_retry_after_that_is_past_is_no_wait() -> None:
    assert retry_after({"Retry-After": "Fri, 20 Nov 2020 09:30:00 GMT"}) == 0


def test_longer_wait_than_allowed_is_an_error(server: Server) -> None:
    body = {"error": "Too many requests.", "code": "rate_limited", "request_id": "r2"}
    server.answers = [httpx.Response(429, json=body, headers={"Retry-After": "61"})]

    with pytest.raises(errors.RateLimited) as refused:
        server.client().bookings.get("1")

    assert (refused.value.retry_after, server.waits) == (61, [])


def test_attempts_end(server: Server) -> None:
    server.answers = [LOST] * 5

    with pytest.raises(ConnectionFailed, match="POST /v2/bookings: no answer") as failed:
        server.client().bookings.create(resource_id="1")

    assert server.keys == [failed.value.idempotency_key] * 5
    assert failed.value.__cause__ is LOST
    assert server.waits == [0.5, 1.0, 2.0, 4.0]


def test_write_without_a_key_is_sent_once(server: Server) -> None:
    server.answers = [LOST]

    with pytest.raises(ConnectionFailed):
        server.client().request("POST", "/v2/calendars/connect", body={}, takes_key=False)

    assert server.keys == [None]


def test_request_in_progress_is_repeated(server: Server) -> None:
    running = {"error": "Is running.", "code": "idempotency_in_progress", "request_id": "r"}
    server.answers = [LOST, httpx.Response(409, json=running), booked()]

    assert server.client().bookings.cancel("1").state == "confirmed"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 412, 413, 415, 422])
def test_refusal_is_not_repeated(server: Server, status: int) -> None:
    server.answers = [httpx.Response(status, json={"error": "No.", "code": "?"})]

    with pytest.raises(Refused):
        server.client().bookings.create(resource_id="1")

    assert len(server.requests) == 1


def test_deletion_whose_answer_was_lost_is_done(server: Server) -> None:
    body = {"error": "Not found.", "code": "not_found", "model": "Event"}
    server.answers = [LOST, httpx.Response(404, json=body), httpx.Response(404, json=body)]
    client = server.client()

    client.events.delete("1")
    with pytest.raises(errors.NotFound) as refused:
        client.events.delete("1")

    assert refused.value.model == "Event"


def test_asynchronous_client_repeats_too(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def book() -> str:
        http = httpx.AsyncClient(transport=httpx.MockTransport(server.answer))
        async with AsyncClient("https://booking.example.com", "key", http=http) as client:
            return (await client.bookings.create(resource_id="1")).state

    server = Server(monkeypatch)
    server.answers = [LOST, busy(), booked()]
    monkeypatch.setattr("scheduling_client.aio.asyncio.sleep", sleep)

    assert asyncio.run(book()) == "confirmed"
    assert waits == [0.5, 1.0]
    assert len(set(server.keys)) == 1


def test_answer_that_is_broken_on_its_way_is_repeated(server: Server) -> None:
    gzip = {"Content-Encoding": "gzip"}
    broken = httpx.Response(201, stream=httpx.ByteStream(b"no gzip"), headers=gzip)
    server.answers = [broken, booked()]

    assert server.client().bookings.create(resource_id="1").state == "confirmed"

    assert len(set(server.keys)) == 1


# --- Errors ---------------------------------------------------------------------------------------
def test_every_code_has_its_class() -> None:
    codes = DOCUMENT["components"]["schemas"]["ErrorOfOne"]["properties"]["code"]["enum"]

    assert sorted(errors.BY_CODE) == sorted(codes)


def test_error_has_the_members_of_its_body(server: Server) -> None:
    span = {"start": "2026-11-23T09:00:00+00:00", "end": "2026-11-23T09:30:00+00:00"}
    body = {"error": "The time is taken.", "code": "slot_taken", "request_id": "r1"}
    server.answers = [httpx.Response(409, json=body | {"conflicts": [span], "alternatives": []})]

    with pytest.raises(errors.SlotTaken) as refused:
        server.client().bookings.create(resource_id="1")

    taken = refused.value
    assert (taken.status, taken.code, taken.request_id) == (409, "slot_taken", "r1")
    assert (str(taken), taken.alternatives) == ("slot_taken: The time is taken.", [])
    assert taken.conflicts == [answers.Span(span)]
    assert taken.conflicts[0].start == datetime(2026, 11, 23, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (httpx.Response(409, json={"error": "Newer.", "code": "newer"}), "newer: Newer."),
        (httpx.Response(404, text="<h1>nginx"), "http_404: The service answered 404."),
        (httpx.Response(403, json=["no"]), "http_403: The service answered 403."),
    ],
)
def test_unknown_error_is_a_refusal(server: Server, answer: httpx.Response, text: str) -> None:
    server.answers = [answer]

    with pytest.raises(Refused) as refused:
        server.client().bookings.get("1")

    assert (type(refused.value), str(refused.value)) == (Refused, text)


@pytest.mark.parametrize("text", ["<h1>Log in to the network", ""])
def test_page_instead_of_an_answer_is_an_error(server: Server, text: str) -> None:
    server.answers = [httpx.Response(200, text=text)]

    with pytest.raises(errors.UnexpectedAnswer) as failed:
        server.client().bookings.create(resource_id="1", idempotency_key="mine")

    assert (failed.value.status, failed.value.idempotency_key, str(failed.value)) == (
        *(200, "mine"),
        "POST /v2/bookings: the answer is no JSON",
    )
    assert len(server.requests) == 1


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("DELETE", 204), ("GET", 304)])
def test_answer_without_a_body(server: Server, method: str, status: int) -> None:
    server.answers = [httpx.Response(status)]

    answer = server.client().request(method, "/v2/app")

    assert (answer.status, answer.body) == (status, None)


@pytest.mark.parametrize("text", ["", "<h1>Moved"])
def test_redirect_is_an_error_that_names_the_other_address(server: Server, text: str) -> None:
    location = {"Location": "https://booking.example.com/v2/app"}
    server.answers = [httpx.Response(301, text=text, headers=location)]

    with pytest.raises(Refused) as refused:
        server.client().app.get()

    assert (refused.value.status, str(refused.value)) == (
        301,
        "http_301: The service redirects to https://booking.example.com/v2/app.",
    )


def test_booking_that_needs_a_code_is_held_and_booked_with_it(server: Server) -> None:
    """With a widget key."""
    at = "2026-11-20T09:45:00+00:00"
    held = {"reservation_id": "h/1", "expires_at": at, "verification": "email"}
    server.answers = [httpx.Response(202, json={"data": held}), booked()]
    client = server.client()

    with pytest.raises(errors.VerificationRequired) as required:
        client.bookings.create(project_id="1")
    booking = client.bookings.verify(required.value.reservation_id, "123456")

    assert required.value.expires_at == datetime(2026, 11, 20, 9, 45, tzinfo=UTC)
    assert booking.state == "confirmed"
    _, request = server.requests
    assert request.url.raw_path == b"/v2/bookings/reserve/h%2F1/verify"
    assert json.loads(request.content) == {"code": "123456"}


@pytest.mark.parametrize(
    "error",
    [
        errors.SlotTaken(409, {"code": "slot_taken", "error": "Taken.", "alternatives": []}),
        Refused(429, {}, retry_after=7.0),
        ConnectionFailed("GET /v2/app: no answer", "mine"),
        errors.UnexpectedAnswer("GET /v2/app: the answer is no JSON", 200, "mine"),
        errors.VerificationRequired("h-1", datetime(2026, 11, 20, 9, 45, tzinfo=UTC)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_passes_between_processes(error: Exception) -> None:
    """As concurrent.futures and task queues pass it."""
    passed = pickle.loads(pickle.dumps(error))

    assert (type(passed), str(passed), vars(passed)) == (type(error), str(error), vars(error))


# --- Methods --------------------------------------------------------------------------------------
SCHEMAS = DOCUMENT["components"]["schemas"]
PAGE = {"total": 1, "current_page": 1, "last_page": 1, "next_cursor": "1-a", "has_more": True}


def operation_of(request: httpx.Request) -> dict[str, Any]:
    """The operation of the document; a fixed path goes before one with parameters."""
    fitting = [
        path
        for path, operations in DOCUMENT["paths"].items()
        if request.method.lower() in operations
        and re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), request.url.path)
    ]
    path = min(fitting, key=lambda path: path.count("{"))
    return DOCUMENT["paths"][path][request.method.lower()]


def answer_of(operation: dict[str, Any]) -> tuple[str, httpx.Response]:
    """The name of the answered object's schema, and a response with its example."""
    status, response = min(operation["responses"].items())
    if "content" not in response:
        return "", httpx.Response(int(status))
    name = response["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
    inner = SCHEMAS[name]["properties"]["data"]
    data = inner.get("items", inner)["$ref"].rsplit("/", 1)[1]
    example = SCHEMAS[data]["examples"][0]
    body = PAGE | {"data": [example] if "items" in inner else example}
    return name if "Report" in name else data, httpx.Response(int(status), json=body)


def methods(client: Client) -> dict[str, Callable[..., Any]]:
    return {
        f"{part}.{name}": method
        for part, requests in vars(client).items()
        if type(requests).__module__ == "scheduling_client.client"
        for name, method in inspect.getmembers(requests, inspect.ismethod)
        if not name.startswith("_")
    }


def call_with_ids(method: Callable[..., Any]) -> Any:
    """With a text for each argument that has to be there."""
    required = [
        parameter
        for parameter in inspect.signature(method).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]
    return method(*["confirm" for _ in required])


@pytest.mark.parametrize("name", methods(Client("http://127.0.0.1")))
def test_method_calls_an_operation_and_reads_its_answer(name: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return answer_of(operation_of(request))[1]

    requests: list[httpx.Request] = []
    http = httpx.Client(transport=httpx.MockTransport(answer))
    result = call_with_ids(methods(Client("http://127.0.0.1", http=http))[name])
    if isinstance(result, Iterable) and not isinstance(result, str):
        result = next(iter(result))
    if isinstance(result, ChangesPage):
        (result,) = result.changes

    (request,) = requests
    operation = operation_of(request)
    expected, response = answer_of(operation)
    if name == "changes.latest_cursor":
        assert result == "1-a"
    elif expected:
        body = json.loads(response.content)
        example = body if "Report" in expected else body["data"]
        assert type(result).__name__ == expected
        assert result.to_dict() == (example[0] if isinstance(example, list) else example)
    else:
        assert result is None
    known = {
        DOCUMENT["components"]["parameters"][each["$ref"].rsplit("/", 1)[1]]["name"]
        if "$ref" in each
        else each["name"]
        for each in operation.get("parameters", ())
    }
    assert set(request.url.params) <= known
    assert ("Idempotency-Key" in request.headers) == ("Idempotency-Key" in known)
