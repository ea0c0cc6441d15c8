"""Checks JSON while it is typed, with the parser of the API."""

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext as _

from office.base.api_forms import JsonField
from office.base.permissions import json_view


@json_view("POST")
def check_json(request: HttpRequest) -> dict[str, Any]:
    """The body: the text of a field. Returns `error` with line and column; "" for an object."""
    text = request.body.decode("utf-8", "replace")
    try:
        value = JsonField(required=False).to_python(text)
    except forms.ValidationError as error:
        return {"error": " ".join(error.messages)}
    return {"error": "" if value is None or isinstance(value, dict) else _("Must be an object.")}
