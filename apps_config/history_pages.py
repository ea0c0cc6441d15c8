"""Who changed what, when, and from what to what: the history of one row in the back office."""

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db import models
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from apps_config.models import Account, Credential
from apps_config.scope import scope_of

PER_PAGE = 50
WHAT = {"+": "made", "~": "changed", "-": "removed"}
# How the log names a key: the kind, and the beginning of its id.
KEY = re.compile(r"(server|widget|resource) key ([0-9a-f]{8})")
NOTHING = "–"


class Change(NamedTuple):
    """One field's old and new value in words."""

    field: str
    old: str
    new: str


class Step(NamedTuple):
    at: datetime
    what: str
    who: str
    changes: tuple[Change, ...]


def show_history(page: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """`page` is the admin class. Raises Http404 for what may not be seen, removed rows included."""
    model = page.model
    rows = _rows(page, request, unquote(object_id))
    current = page.get_queryset(request).filter(pk=unquote(object_id)).first()
    if current is None and not rows.exists():
        raise Http404
    paginator = Paginator(rows, PER_PAGE)
    number = paginator.get_page(request.GET.get("p"))
    # One more than is shown: what the last of them is compared with.
    first = (number.number - 1) * PER_PAGE
    found = list(rows[first : first + PER_PAGE + 1])
    context = {
        **page.admin_site.each_context(request),
        "opts": model._meta,
        "title": f"History: {current or as_it_was(model, found[0])}",
        "original": current,
        "steps": list(_steps(request, model, found)),
        "number": number,
    }
    return TemplateResponse(request, "office/history.html", context)


def as_it_was(model: type[models.Model], row: Any) -> models.Model:
    """The row that a step of its history tells of, unsaved."""
    kept = {field.attname: getattr(row, field.attname) for field in row.tracked_fields}
    return model(**kept)


def _rows(page: Any, request: HttpRequest, object_id: str) -> Any:
    """The row's history, the newest first, as far as it was of the caller's apps."""
    model = page.model
    try:
        key = model._meta.pk.to_python(object_id)
    except ValidationError:
        raise Http404 from None
    name = model._meta.pk.attname
    paths = [name if path == "pk" else path for path in page.app_paths]
    rows = model.history.filter(**{name: key})
    scope = scope_of(request)
    if not scope.is_staff:
        ids, of_apps = scope.ids(page.seen_by), Q(pk__in=[])
        for path in paths:
            of_apps |= Q(**{f"{path}__in" if path == name else f"{path}_id__in": ids})
        rows = rows.filter(of_apps)
    return rows.order_by("-history_date", "-history_id")


def _steps(request: HttpRequest, model: type[models.Model], found: list[Any]) -> Iterator[Step]:
    names = _names(request, found)
    for place, row in enumerate(found[:PER_PAGE]):
        before = found[place + 1] if place + 1 < len(found) else None
        yield Step(
            at=row.history_date,
            what=WHAT[row.history_type],
            who=names.get(row.history_change_reason or "")
            or row.history_change_reason
            or names.get(str(row.history_user_id))
            or "the service",
            changes=tuple(changes_between(model, before, row)) if row.history_type != "-" else (),
        )


def _names(request: HttpRequest, found: Sequence[Any]) -> Mapping[str, str]:
    """Readable names: of keys by what the log calls them, of accounts by their id."""
    calls = {row.history_change_reason for row in found if row.history_change_reason}
    beginnings = {match[2]: call for call in calls if (match := KEY.fullmatch(call))}
    names: dict[str, str] = {}
    if beginnings:
        wanted = Q(pk__in=[])
        for start in beginnings:
            span = (uuid.UUID(start + "0" * 24), uuid.UUID(start + "f" * 24))
            wanted |= Q(id__range=span)
        keys = Credential.objects.filter(wanted, scope_of(request).rows("app"))
        for key in keys.only("id", "kind", "prefix", "description"):
            call = f"{key.kind} key {str(key.id)[:8]}"
            words = f"{key.kind} key {key.prefix}…"
            words += f" ({key.description})" if key.description else ""
            # Two keys of one moment share the beginning: then the log's words stand.
            names[call] = call if call in names else words
    nameless = {row.history_user_id for row in found if not row.history_change_reason} - {None}
    if nameless:
        for account in Account.objects.filter(id__in=nameless).only("id", "email"):
            names[str(account.id)] = account.email
    return names


def changes_between(model: type[models.Model], old: Any, new: Any) -> Iterator[Change]:
    """Field by field; of an object key by key. Without `old`: everything that has a value."""
    for field in new.tracked_fields:
        if field.primary_key or field.name in ("created_at", "position"):
            continue
        before = getattr(old, field.attname) if old else None
        after = getattr(new, field.attname)
        if before == after or (old is None and after in ("", None, [], {})):
            continue
        label = str(model._meta.get_field(field.name).verbose_name)
        if isinstance(after, dict) and isinstance(before, dict | None):
            yield from _changed_keys(label, before or {}, after)
        else:
            yield Change(label, in_words(before), in_words(after))


def _changed_keys(label: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield Change(f"{label}: {key}", in_words(old.get(key)), in_words(new.get(key)))


def in_words(value: Any) -> str:
    if value in ("", None, [], {}):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M} UTC"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, indent=1)
    return str(value)
