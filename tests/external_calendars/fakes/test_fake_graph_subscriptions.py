"""Subscriptions of the fake of Microsoft Graph: handshake, expiry, notifications, lifecycle."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.external_calendars.fakes.graph import FakeGraph
from tests.external_calendars.fakes.graph_client import ADA, GraphClient, event
from tests.external_calendars.front import Answer, Front
from tests.sinks import Call


@pytest.fixture
def sink() -> Iterator[Front]:
    """The service's address for notifications, which shakes hands."""
    front = Front()
    front.answer = echo_token
    yield front
    front.stop()


def echo_token(call: Call) -> Answer:
    [(_, token)] = parse_qsl(urlsplit(call.path).query) or [("", "")]
    return Answer(200, token.encode(), {"Content-Type": "text/plain"})


def subscription(sink: Front, graph: FakeGraph, **more: Any) -> dict[str, Any]:
    ends_at = graph.clock.now() + timedelta(minutes=4200)
    folder = graph.mailboxes[ADA].default_calendar
    return {
        "changeType": "created,updated,deleted",
        "notificationUrl": f"{sink.url}/notifications",
        "lifecycleNotificationUrl": f"{sink.url}/lifecycle",
        "resource": f"/me/calendars/{folder.id}/events",
        "expirationDateTime": f"{ends_at:%Y-%m-%dT%H:%M:%SZ}",
        "clientState": "secret",
        **more,
    }


def notices(graph: FakeGraph, sink: Front) -> list[list[dict[str, Any]]]:
    """The notices of each POST so far, without handshakes."""
    graph.sender.wait()
    return [call.json["value"] for call in sink.calls if "validationToken" not in call.path]


def test_subscription_needs_both_handshakes(
    graph: FakeGraph, client: GraphClient, sink: Front
) -> None:
    sink.answer = lambda call: Answer(200, b"wrong", {"Content-Type": "text/plain"})
    refused = client.error("POST", "/subscriptions", json=subscription(sink, graph))
    sink.answer = echo_token
    made = client.post("/subscriptions", subscription(sink, graph))

    assert refused == (400, "InvalidRequest")
    assert [urlsplit(call.path).path for call in sink.calls] == [
        "/notifications",
        "/notifications",
        "/lifecycle",
    ]
    assert made["expirationDateTime"] == "2026-11-30T07:00:00Z"
    assert made["clientState"] == "secret"
    assert [each["id"] for each in client.get("/subscriptions")["value"]] == [made["id"]]


def test_subscription_lasts_45_to_4230_minutes(
    graph: FakeGraph, client: GraphClient, sink: Front
) -> None:
    def ends(minutes: int) -> str:
        return (graph.clock.now() + timedelta(minutes=minutes)).isoformat()

    short = client.post("/subscriptions", subscription(sink, graph, expirationDateTime=ends(5)))
    long = subscription(sink, graph, expirationDateTime=ends(4231))
    refused = client.error("POST", "/subscriptions", json=long)
    state = client.error(
        "POST", "/subscriptions", json=subscription(sink, graph, clientState="x" * 129)
    )
    path = f"/subscriptions/{short['id']}"
    renewed = client.send("PATCH", path, json={"expirationDateTime": ends(4230)}).json()
    graph.clock.advance(minutes=4230)

    assert short["expirationDateTime"] == "2026-11-27T09:45:00Z"
    assert refused == state == (400, "InvalidRequest")
    assert renewed["expirationDateTime"] == "2026-11-30T07:30:00Z"
    client.token = graph.access_token(ADA)
    gone = client.error("PATCH", path, json={"expirationDateTime": ends(60)})
    assert gone == (404, "ResourceNotFound")


def test_changes_are_notified(
    graph: FakeGraph, client: GraphClient, calendar: str, sink: Front
) -> None:
    made = client.post("/subscriptions", subscription(sink, graph))
    other = graph.mailboxes[ADA].add_calendar("Other")

    created = client.post(f"{calendar}/events", event())
    graph.create(ADA, event(), other)
    with graph.subscriptions.batched():
        graph.change(created["id"], {"subject": "Dinner"})
        graph.remove(created["id"])

    first, batch = notices(graph, sink)
    resource = f"Users/{graph.mailboxes[ADA].id}/Events/{created['id']}"
    assert first == [
        {
            "subscriptionId": made["id"],
            "subscriptionExpirationDateTime": "2026-11-30T07:00:00Z",
            "tenantId": graph.mailboxes[ADA].tenant_id,
            "clientState": "secret",
            "changeType": "created",
            "resource": resource,
            "resourceData": {
                "@odata.type": "#Microsoft.Graph.Event",
                "@odata.id": resource,
                "@odata.etag": created["@odata.etag"],
                "id": created["id"],
            },
        }
    ]
    assert [each["changeType"] for each in batch] == ["updated", "deleted"]


def test_notifications_end_with_the_subscription(
    graph: FakeGraph, client: GraphClient, sink: Front
) -> None:
    first = client.post("/subscriptions", subscription(sink, graph))
    client.post("/subscriptions", subscription(sink, graph, changeType="deleted"))

    client.send("DELETE", f"/subscriptions/{first['id']}")
    item = graph.create(ADA, event())
    graph.clock.advance(minutes=4201)
    graph.remove(item.id)

    assert notices(graph, sink) == []


def test_lifecycle_is_notified_and_reauthorized(
    graph: FakeGraph, client: GraphClient, sink: Front
) -> None:
    made = client.post("/subscriptions", subscription(sink, graph))
    stored = graph.subscriptions.all[made["id"]]

    graph.subscriptions.notify_lifecycle(stored, "reauthorizationRequired")
    item = graph.create(ADA, event())
    again = client.send("POST", f"/subscriptions/{made['id']}/reauthorize")
    graph.remove(item.id)
    graph.subscriptions.notify_lifecycle(stored, "missed")
    graph.subscriptions.notify_lifecycle(stored, "subscriptionRemoved")

    assert again.status_code == 204
    kinds = [each.get("lifecycleEvent") or each["changeType"] for [each] in notices(graph, sink)]
    assert kinds == ["reauthorizationRequired", "deleted", "missed", "subscriptionRemoved"]
    assert client.get("/subscriptions")["value"] == []


def test_notifications_are_held_and_forged(
    graph: FakeGraph, client: GraphClient, sink: Front
) -> None:
    client.post("/subscriptions", subscription(sink, graph))
    graph.sender.is_holding = True
    graph.create(ADA, event())
    [held] = graph.sender.held

    forged = replace(held, body=held.body.replace(b"secret", b"guessed"))
    statuses = [graph.sender.deliver(forged), *graph.sender.release()]

    assert statuses == [200, 200]
    states = [each["clientState"] for [each] in notices(graph, sink)]
    assert states == ["guessed", "secret"]
