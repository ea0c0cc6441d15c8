"""The app that the requests of tests/recorded_answers.jsonl.gz are sent to, and its callers.

Ids and secrets of the world stand in requests and answers as names: `<resource_id>`, `<id 1>`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.db import transaction
from django.test import Client

from apps_config.models import Account, App, Credential, Membership
from apps_config.public_limits import LIMITS
from apps_config.services import issue_key
from tests.local import LocalApp
from tests.world import Answer, basic

Json = dict[str, Any]
PROJECT = {"availability": {"length": "30 minutes", "to": "4 weeks"}}
ROLES = (Membership.VIEWER, Membership.EDITOR, Membership.OWNER)
# Differ from run to run, or say nothing of the answer.
IGNORED_HEADERS = {"Service-Request-Id", "Content-Length", "Vary", "X-RateLimit-Remaining"}
# By the clock of the database, and by ids.
IGNORED_HEADERS |= {"Service-Complete-Until", "ETag"}
CHANGING = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r'(?<="requests";r=)[0-9]+', "<left>"),
        (r"(?:(?:live|test)_(?:api|widget)_key_)?[0-9a-f]{10}_[A-Za-z0-9_-]{43}", "<key>"),
        (r"(?:(?:live|test)_(?:api|widget)_key_)?[0-9a-f]{10}_", "<prefix>"),
        (r"whsec_[A-Za-z0-9+/=_-]+", "<secret>"),
        (r"(signature=)[A-Za-z0-9._%-]+", r"\1<signature>"),
        (r"(token=)[A-Za-z0-9._-]+", r"\1<token>"),
        (r'("(?:token|api_token|salt|signature|challenge|payment_key)":")[^"]+', r"\1<secret>"),
        (r'("version":")[^"]+(?=","limits")', r"\1<version>"),
        (r"app-[0-9a-f]{12}", "<slug>"),
        (r"[0-9a-f]{32}(?=@example\.com)", "<mailbox>"),
        (r'("slug":")[0-9a-f]{32}', r"\1<project_slug>"),
    )
]
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class RecordedWorld:
    """An app with one of everything, another app, and a caller of each kind."""

    def __init__(self) -> None:
        self.app, self.other = LocalApp(), LocalApp()
        for each in (self.app, self.other):
            off = dict.fromkeys((name for name in LIMITS if name.startswith("public_")), 0)
            each.call("PUT", f"/v2/apps/{each.slug}", {"settings": off})
        self.ids = self.app.make_ids(PROJECT)
        theirs = self.other.make_ids(PROJECT)
        self.ids |= {f"other_{name}": value for name, value in theirs.items()}
        app = App.objects.get(slug=self.app.slug)
        self.callers = {
            "server": self.app.headers["Authorization"],
            "widget": basic(self.app.widget_key),
            "nobody": None,
            "wrong": basic("live_api_key_0000000000_" + 43 * "x"),
            "other": self.other.headers["Authorization"],
            **self._tokens(app),
            "page": basic(
                issue_key(Credential.WIDGET, app=app, projects=[self.ids["project_id"]])[1]
            ),
            "resource": self._resource_key(),
        }
        self.names = {value: f"<{name}>" for name, value in self.ids.items()}

    def _tokens(self, app: App) -> dict[str, str]:
        found = {}
        for role in ROLES:
            email = f"{role}@example.com"
            account = Account.objects.create_user(email)
            Membership.objects.create(account=account, app=app, role=role)
            found[role] = basic(issue_key(Credential.ACCESS, account=account)[1], email)
        both = Account.objects.create_user("both@example.com")
        for slug in (self.app.slug, self.other.slug):
            of_slug = App.objects.get(slug=slug)
            Membership.objects.create(account=both, app=of_slug, role=Membership.OWNER)
        found["both"] = basic(issue_key(Credential.ACCESS, account=both)[1], "both@example.com")
        return found

    def _resource_key(self) -> str:
        wanted = {"kind": "resource", "resource_id": self.ids["resource_id"]}
        key = self.app.post("/v2/credentials", wanted).data["key"]
        return basic(key, self.ids["email"])

    def send(self, request: Mapping[str, Any]) -> Json:
        """The answer as it is recorded; what the request did is taken back."""
        with transaction.atomic():
            answers = [self._call(request) for _ in range(request.get("times", 1))]
            transaction.set_rollback(True)
        return self._as_recorded(answers[-1])

    def _call(self, request: Mapping[str, Any]) -> Answer:
        headers = {name: self._filled(value) for name, value in request["headers"].items()}
        if authorization := self.callers[request["caller"]]:
            headers["Authorization"] = authorization
        body = request["body"]
        content = body if isinstance(body, str) else json.dumps(body)
        response = Client().generic(
            request["method"],
            self._filled(request["path"], quoted=True),
            b"" if body is None else self._filled(content).encode(),
            content_type=request.get("content_type", "application/json"),
            headers=headers,
        )
        return Answer(response)

    def _filled(self, text: str, *, quoted: bool = False) -> str:
        for name, value in self.ids.items():
            text = text.replace(f"<{name}>", quote(value) if quoted else value)
        return text

    def _as_recorded(self, answer: Answer) -> Json:
        text = answer.content.decode()
        is_error = answer.json is not None and "request_id" in answer.json
        if is_error:
            text = text.replace(answer.json["request_id"], "<request_id>")
        return {
            "status": answer.status,
            "headers": {
                name: self._without_changing(value)
                for name, value in sorted(answer.headers.items())
                if name not in IGNORED_HEADERS
            },
            "body": self._without_changing(text),
        }

    def _without_changing(self, text: str) -> str:
        for value in sorted(self.names, key=len, reverse=True):
            text = text.replace(value, self.names[value]).replace(quote(value), self.names[value])
        for pattern, name in CHANGING:
            text = pattern.sub(name, text)
        new_ids = dict.fromkeys(UUID.findall(text))
        for number, identifier in enumerate(new_ids, start=1):
            text = text.replace(identifier, f"<id {number}>")
        return text
