"""An app as tests/live.py has it, called in this process and in the test's own transaction."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.test import Client

from apps_config.models import Account
from apps_config.services import create_app, issue_key
from tests.live import LiveCaller, SampleRows, write_json
from tests.world import Answer, basic


class LocalCaller(LiveCaller):
    """A client with one key (or none); paths begin with `/v2`."""

    def __init__(self, key: str | None = None, user: str = "") -> None:
        super().__init__("http://testserver")
        if key is not None:
            self.headers["Authorization"] = basic(key, user)

    def call(  # type: ignore[override]  # an answer of the same form
        self, method: str, path: str, body: Any = None, headers: Mapping[str, Any] | None = None
    ) -> Answer:
        content = body if isinstance(body, bytes) else b"" if body is None else write_json(body)
        named = {**self.headers, **(headers or {})}
        response = Client().generic(
            method, path, content, content_type="application/json", headers=named
        )
        return Answer(response)


class LocalApp(SampleRows, LocalCaller):
    """A fresh app, called with its server key."""

    def __init__(self, mode: str = "live") -> None:
        self.slug = f"app-{uuid.uuid4().hex[:12]}"
        self.owner_email = f"{self.slug}@example.com"
        owner = Account.objects.create_user(self.owner_email, "correct horse battery")
        app = create_app(slug=self.slug, name="Demo", mode=mode, owner=owner)
        server, self.widget_key = (
            issue_key(kind, mode=app.mode, app=app)[1] for kind in ("server", "widget")
        )
        self.access_token = issue_key("access", account=owner)[1]
        super().__init__(server)

    def widget(self) -> LocalCaller:
        return LocalCaller(self.widget_key)

    def owner(self) -> LocalCaller:
        return LocalCaller(self.access_token, self.owner_email)
