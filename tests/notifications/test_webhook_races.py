"""Several at once, against the running service."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from notifications.webhooks.services import MAX_WEBHOOKS
from tests.live import WEBHOOK, LiveApp
from tests.services import Service

pytestmark = pytest.mark.both_databases


def test_concurrent_creations_respect_the_limit(live_service: Service) -> None:
    app = LiveApp(live_service)
    for _ in range(MAX_WEBHOOKS - 1):
        assert app.post("/v2/webhooks", WEBHOOK).status == 201

    with ThreadPoolExecutor(12) as pool:
        codes = list(pool.map(lambda _: app.post("/v2/webhooks", WEBHOOK).code, range(12)))

    assert Counter(codes) == {"201": 1, "422 invalid": 11}
    assert len(app.get("/v2/webhooks").data) == MAX_WEBHOOKS


def test_concurrent_updates_and_deletions_are_consistent(live_service: Service) -> None:
    app = LiveApp(live_service)
    webhook = app.post("/v2/webhooks", WEBHOOK).data
    path = f"/v2/webhooks/{webhook['id']}"
    calls = [
        ("PUT", path, {"active": True, "url": "https://example.com/other"}),
        ("POST", f"{path}/rotate", None),
        ("POST", f"{path}/test", None),
        ("DELETE", path, None),
    ] * 5

    with ThreadPoolExecutor(len(calls)) as pool:
        answers = list(pool.map(lambda call: (call[0], app.call(*call)), calls))

    codes = Counter((method, answer.code) for method, answer in answers)
    assert codes["DELETE", "204"] == 1
    assert {code for _, code in codes} <= {"200", "201", "204", "404 not_found"}
    assert app.get(path).status == 404
    made = [answer.data["id"] for _, answer in answers if answer.status == 201]
    listed = {one["id"]: one["state"] for one in app.get("/v2/deliveries?type=webhook").data}
    assert set(listed) == set(made)
