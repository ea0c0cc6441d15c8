"""People at the back office, and what they do there: logged-in clients, forms as browsers send
them."""

import re
import time
from html import unescape
from html.parser import HTMLParser
from typing import Any

from django.test import Client
from django.utils import timezone

from apps_config.models import Account, App, Membership
from office.access.session_age import begin_session


def superuser(email: str = "staff@example.com") -> Client:
    return _client(Account.objects.create_superuser(email, "x" * 12))


def member(app: App, role: str, email: str | None = None) -> Client:
    account = Account.objects.create_user(email or f"{role}@{app.slug}.example.com")
    Membership.objects.create(app=app, account=account, role=role)
    return _client(account)


def _client(account: Account) -> Client:
    client = Client()
    log_in_now(client, account)
    client.account = account  # type: ignore[attr-defined]
    return client


def log_in_now(client: Client, account: Account) -> None:
    """A session that has begun just now, with a password."""
    client.force_login(account)
    session = client.session
    record = {"method": "password", "at": time.time()}
    session["account_authentication_methods"] = [record]
    session["account_authentication_methods_user"] = str(account.pk)
    begin_session(session, now=timezone.now())


class _Fields(HTMLParser):
    """What a browser would send of a page's forms, if nothing was typed; without the account menu,
    which has a form for each language.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, list[str]] = {}
        self.area: str | None = None
        self.select: str | None = None
        self.first: str | None = None
        self.text = ""
        self.is_in_menu = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        name = given.get("name")
        if tag == "form":
            self.is_in_menu = given.get("action", "").endswith("/language/")
        if self.is_in_menu:
            return
        if tag == "input" and name:
            kind = given.get("type", "text")
            if kind in ("submit", "button"):
                return
            if kind in ("checkbox", "radio") and "checked" not in given:
                return
            self.add(name, given.get("value", "on" if kind in ("checkbox", "radio") else ""))
        elif tag == "textarea":
            self.area, self.text = name, ""
        elif tag == "select":
            self.select, self.first = name, None
        elif tag == "option" and self.select:
            if self.first is None:
                self.first = given.get("value", "")
            if "selected" in given:
                self.add(self.select, given.get("value", ""))

    def handle_data(self, data: str) -> None:
        if self.area:
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self.area:
            self.add(self.area, self.text.removeprefix("\n"))
            self.area = None
        elif tag == "select" and self.select:
            if self.select not in self.fields and self.first is not None:
                self.add(self.select, self.first)
            self.select = None

    def add(self, name: str, value: str) -> None:
        self.fields.setdefault(name, []).append(value)


def form_of(client: Client, path: str) -> dict[str, Any]:
    """The fields of the page's forms as they stand there."""
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    parser = _Fields()
    parser.feed(answer.content.decode())
    skipped = ("csrfmiddlewaretoken", "q", "s", "member")
    fields = {name: found for name, found in parser.fields.items() if "__prefix__" not in name}
    return {
        name: found[0] if len(found) == 1 else found
        for name, found in fields.items()
        if name not in skipped
    }


def messages_of(answer: Any) -> list[str]:
    """What the messages of a page that was followed to say."""
    return [str(message) for message in answer.context["messages"]]


def faults(answer: Any) -> dict[str, list[str]]:
    """Of the page's form."""
    return {name: list(found) for name, found in answer.context["adminform"].form.errors.items()}


def secret_on(answer: Any) -> str:
    found = re.search(r'<input id="secret"[^>]* value="([^"]*)"', answer.content.decode())
    assert found, answer.content
    return unescape(found[1])
