"""The base of pages with one step: its HTML, and its texts for errors."""

import re
from collections.abc import Sequence

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from rest_framework.request import Request

from bookings.pages.base import PageView, StepLink, form_field
from bookings.pages.refusal_texts import REFUSAL_TEXTS, UNREADABLE
from common.errors import Forbidden, InUse, NotFound, Outdated


class Blocked(Forbidden):
    """A refusal with a text of its own."""


class StepView(PageView):
    refusals = {**REFUSAL_TEXTS, Blocked: ("You are blocked", "Please contact us.")}

    def get(self, request: Request) -> HttpResponse:
        self.redirect = "https://www.example.com/thanks"
        return self.show_step(
            200,
            "Cancel <this>?",
            "It is <b>final</b>.",
            reasons=["It is too late."],
            fields=[
                form_field("email", "E-mail", 'a"b', hint="Yours.", type="email", required=True),
                form_field("name", "Name", error="Please fill this in."),
                form_field("reason", "Reason", type="textarea", rows=3, maxlength=2000),
            ],
            token="t0ken",
            button="Cancel it",
            is_danger=True,
            keep=StepLink("Keep it", "?keep=1"),
            links=[StepLink("Book again", "/book/one", is_button=True)],
        )

    def post(self, request: Request) -> HttpResponse:
        return self.show_step(200, "Cancelled")

    def page_facts(self) -> Sequence[tuple[str, str]]:
        return [("What", "Check-up")]

    def page_links(self) -> Sequence[StepLink]:
        return [StepLink("Your bookings", "/book/one/mine")]


def main_of(response: HttpResponse) -> list[str]:
    """Return the tags and texts of the page's `<main>`."""
    main = response.content.decode().partition("<main>")[2].partition("</main>")[0]
    return [
        " ".join(piece.split()) for piece in re.findall(r"<[^>]*>|[^<]+", main) if piece.strip()
    ]


def test_step_with_all_parts() -> None:
    response = StepView.as_view()(RequestFactory().get("/"))

    assert "".join(main_of(response)) == (
        "<h1>Cancel &lt;this&gt;?</h1><p>It is &lt;b&gt;final&lt;/b&gt;.</p>"
        "<ul><li>It is too late.</li></ul>"
        '<dl><div><dt>What</dt><dd dir="auto">Check-up</dd></div></dl>'
        '<form method="post"><input type="hidden" name="token" value="t0ken">'
        '<div class="field"><label for="email">E-mail</label>'
        '<input id="email" name="email" type="email" value="a&quot;b" maxlength="254" required'
        ' aria-describedby="email-hint"><p id="email-hint" class="hint">Yours.</p></div>'
        '<div class="field"><label for="name">Name</label>'
        '<input id="name" name="name" type="text" value="" maxlength="254"'
        ' aria-invalid="true" aria-describedby="name-error" autofocus>'
        '<p id="name-error" class="error">Please fill this in.</p></div>'
        '<div class="field"><label for="reason">Reason</label>'
        '<textarea id="reason" name="reason" maxlength="2000" rows="3"></textarea></div>'
        '<button type="submit" class="danger">Cancel it</button>'
        '<a class="keep" href="?keep=1">Keep it</a></form>'
        '<p><a class="button" href="/book/one">Book again</a></p>'
        '<p><a href="/book/one/mine">Your bookings</a></p>'
    )
    assert response.headers["Content-Security-Policy"].endswith(
        "; form-action 'self' https://www.example.com"
    )


def test_step_without_form() -> None:
    response = StepView.as_view()(RequestFactory().post("/"))

    assert "".join(main_of(response)) == (
        '<h1>Cancelled</h1><dl><div><dt>What</dt><dd dir="auto">Check-up</dd></div></dl>'
        '<p><a href="/book/one/mine">Your bookings</a></p>'
    )
    assert response.headers["Content-Security-Policy"].endswith("; form-action 'self'")


@pytest.mark.parametrize(
    ("error", "status", "texts"),
    [
        (Blocked(), 403, ("You are blocked", "Please contact us.")),
        (Forbidden(), 403, REFUSAL_TEXTS["forbidden"]),
        (NotFound("Booking"), 404, REFUSAL_TEXTS["not_found"]),
        (InUse("It is used."), 409, UNREADABLE),
        (Outdated("It has changed."), 409, UNREADABLE),
    ],
)
def test_error_page_has_the_text_of_its_class_or_code(
    error: Exception, status: int, texts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(view: StepView, request: Request) -> HttpResponse:
        raise error

    monkeypatch.setattr(StepView, "get", refuse)
    response = StepView.as_view()(RequestFactory().get("/"))

    assert response.status_code == status
    assert main_of(response)[:6] == ["<h1>", texts[0], "</h1>", "<p>", str(texts[1]), "</p>"]


def test_page_of_a_server_error_has_neither_facts_nor_links(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(view: StepView, request: Request) -> HttpResponse:
        raise RuntimeError

    monkeypatch.setattr(StepView, "get", fail)
    response = StepView.as_view()(RequestFactory().get("/"))

    assert response.status_code == 500
    assert main_of(response) == [
        *("<h1>", "Something went wrong on our side", "</h1>"),
        *("<p>", "Nothing was changed. Please try again later.", "</p>"),
    ]
