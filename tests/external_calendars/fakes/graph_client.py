"""A client of the fake of Microsoft Graph, for its own tests."""

from datetime import datetime, timedelta
from typing import Any

import requests

from tests.external_calendars.fakes.server import Gateway

ADA = "ada@harbour.example"
CALLBACK = "https://service.example/v2/calendars/callback"


class GraphClient:
    """Sends requests as a correct client does; `prefer` and `headers` change that."""

    def __init__(self, gateway: Gateway, token: str) -> None:
        self.gateway, self.token = gateway, token
        self.prefer = 'IdType="ImmutableId", outlook.timezone="UTC"'

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        url = path if path.startswith("http") else f"https://graph.microsoft.com/v1.0{path}"
        headers = {"Authorization": f"Bearer {self.token}", "Prefer": self.prefer}
        headers |= options.pop("headers", {})
        address = url if url.startswith(self.gateway.url) else self.gateway.address(url)
        return requests.request(method, address, headers=headers, timeout=20, **options)

    def get(self, path: str, **query: str) -> Any:
        answer = self.send("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.send("POST", path, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def round(self, link: str) -> tuple[list[Any], str]:
        """Read a round of delta: its items, and the link to the next round."""
        items: list[Any] = []
        while True:
            answer = self.get(link)
            items += answer["value"]
            if "@odata.deltaLink" in answer:
                return items, answer["@odata.deltaLink"]
            link = answer["@odata.nextLink"]

    def error(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        answer = self.send(method, path, **options)
        return answer.status_code, answer.json()["error"]["code"]


def event(start: str = "2026-12-01T10:00:00", zone: str = "UTC", **more: Any) -> dict[str, Any]:
    """An event of half an hour."""
    end = (datetime.fromisoformat(start) + timedelta(minutes=30)).isoformat()
    times = {"start": {"dateTime": start, "timeZone": zone}, "end": {"dateTime": end}}
    times["end"]["timeZone"] = zone
    return {"subject": "Lunch", **times, **more}
