"""The page that shows a secret: once, as the answer to the form that made it."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse


def show_secret(page: Any, request: HttpRequest, **words: Any) -> HttpResponse:
    """A secret, in this answer alone: `title`, `heading`, `secret`, `back`; `is_public`: it may be
    had again."""
    context = {**page.admin_site.each_context(request), "opts": page.model._meta, **words}
    return TemplateResponse(request, "office/secret.html", context)
