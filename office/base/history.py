"""The history page of a row: who changed what, when, with old and new values."""

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.core.paginator import Page, Paginator
from django.db import models
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest
from django.utils.functional import lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from simple_history.models import HistoricalChanges

from apps_config.models import Account, App, Credential
from bookings.graphs import STATES
from common.time.zone_names import current_zone_name
from notifications.mail import SLUGS
from notifications.planning import WEBHOOK_KINDS
from office.base.dates import moment_words
from office.base.labels import (
    GRAPH_WORDS,
    MODE_NAMES,
    RULE_WORDS,
    json_words,
    kind_words,
    state_words,
    template_words,
    yes_or_no,
)
from office.base.lazy_text import LazyText
from office.base.model_admin_pages import Row
from office.base.rule_rows import rule_text
from office.base.scope import scope_of

PER_PAGE = 50
CHANGES = {"+": "made", "~": "changed", "-": "removed"}
# Key names in the log: the kind and the start of the id.
KEY = re.compile(r"(server|widget|resource) key ([0-9a-f]{8})")
KEY_WORDS = {
    "server": gettext_lazy("server key %(key)s"),
    "widget": gettext_lazy("widget key %(key)s"),
    "resource": gettext_lazy("resource key %(key)s"),
    "access": gettext_lazy("access key %(key)s"),
}
NOTHING = "–"
# Names of the API that stand in columns and settings.
NAMES_IN_WORDS: Mapping[str, LazyText] = {
    **RULE_WORDS,
    **GRAPH_WORDS,
    **MODE_NAMES,
    **{state: lazy(state_words, str)(state) for state in STATES},
    **{kind: lazy(kind_words, str)(kind) for kind in WEBHOOK_KINDS},
    **{slug: lazy(template_words, str)(slug) for slug in SLUGS},
}
# Translators: instead of the name of a row that is deleted, in its place in a history.
REMOVED = gettext_lazy("a deleted one")
# Names of the rows that foreign keys refer to, by their ids.
RowNames = Mapping[object, str]


class FieldChange(NamedTuple):
    """A field's old and new value, as text."""

    field: str
    old: str
    new: str


class HistoryStep(NamedTuple):
    at: datetime
    what: str
    who: str
    changes: tuple[FieldChange, ...]


def find_changes(
    request: HttpRequest,
    model: Any,
    object_id: str,
    app_paths: Sequence[str],
    *,
    least: str,
) -> QuerySet[HistoricalChanges]:
    """Return the row's history in the apps where the account has the role, the newest first.

    app_paths: as of the model's admin. Raises Http404 for a malformed id.
    """
    pk = model._meta.pk
    try:
        key = pk.to_python(object_id)
    except ValidationError:
        raise Http404 from None
    name = pk.attname
    paths = [name if path == "pk" else path for path in app_paths]
    rows = model.history.filter(**{name: key})
    scope = scope_of(request)
    if not scope.is_staff:
        ids, of_apps = scope.ids(least), Q(pk__in=[])
        for path in paths:
            of_apps |= Q(**{f"{path}__in" if path == name else f"{path}_id__in": ids})
        rows = rows.filter(of_apps)
    return rows.order_by("-history_date", "-history_id")


def read_changes_of_page(
    request: HttpRequest, rows: QuerySet[HistoricalChanges]
) -> tuple[list[HistoricalChanges], Page]:
    """Return the changes on the page `?p=` of a history, and one more to compare the last with."""
    number = Paginator(rows, PER_PAGE).get_page(request.GET.get("p"))
    first = (number.number - 1) * PER_PAGE
    return list(rows[first : first + PER_PAGE + 1]), number


def row_at_step(model: type[Row], row: HistoricalChanges) -> Row:
    kept = {field.attname: getattr(row, field.attname) for field in row.tracked_fields}
    return model(**kept)


def history_steps(
    request: HttpRequest, changes: Sequence[HistoricalChanges]
) -> Iterator[HistoryStep]:
    """Yield what `office/history.html` shows of a page's changes."""
    names, rows = _names(request, changes), _names_of_rows(changes)
    for place, row in enumerate(changes[:PER_PAGE]):
        before = changes[place + 1] if place + 1 < len(changes) else None
        yield HistoryStep(
            at=row.history_date,
            what=CHANGES[row.history_type],
            who=names.get(row.history_change_reason or "")
            or _key_words(row.history_change_reason or "")
            or names.get(str(row.history_user_id))
            or _("the service"),
            changes=tuple(changes_between(before, row, rows)) if row.history_type != "-" else (),
        )


def _names(request: HttpRequest, changes: Sequence[HistoricalChanges]) -> Mapping[str, str]:
    """Return readable names: of keys by their name in the log, of accounts by id."""
    calls = {row.history_change_reason for row in changes if row.history_change_reason}
    calls_by_key = {match[2]: call for call in calls if (match := KEY.fullmatch(call))}
    names: dict[str, str] = {}
    if calls_by_key:
        condition = Q(pk__in=[])
        for start in calls_by_key:
            span = (uuid.UUID(start + "0" * 24), uuid.UUID(start + "f" * 24))
            condition |= Q(id__range=span)
        keys = Credential.objects.filter(condition, scope_of(request).rows("app"))
        for key in keys.only("id", "kind", "prefix", "description"):
            call = f"{key.kind} key {str(key.id)[:8]}"
            words = KEY_WORDS[key.kind] % {"key": f"{key.prefix}…"}
            words += f" ({key.description})" if key.description else ""
            # Keys of the same millisecond share the start of the id: keep the log's name.
            names[call] = _key_words(call) if call in names else words
    nameless = {row.history_user_id for row in changes if not row.history_change_reason} - {None}
    if nameless:
        for account in Account.objects.filter(id__in=nameless).only("id", "email"):
            names[str(account.id)] = account.email
    return names


def _key_words(name: str) -> str:
    """Return the name of a key in the log in words; other names unchanged."""
    matched = KEY.fullmatch(name)
    return KEY_WORDS[matched[1]] % {"key": matched[2]} if matched else name


def _names_of_rows(changes: Sequence[HistoricalChanges]) -> RowNames:
    """Return the names of the rows that foreign keys refer to, with one query per model."""
    names: dict[object, str] = {}
    for field in changes[0].tracked_fields if changes else ():
        if is_reference(field):
            keys = {getattr(row, field.attname) for row in changes} - {None}
            rows = field.related_model._base_manager.in_bulk(keys)
            names |= {key: str(row) for key, row in rows.items()}
    return names


def is_reference(field: models.Field) -> bool:
    """Return whether the field refers to a row whose name says something: not to the app."""
    return bool(field.related_model) and field.related_model is not App


def changes_between(
    old: HistoricalChanges | None, new: HistoricalChanges, rows: RowNames
) -> Iterator[FieldChange]:
    """Yield the changes by field, of JSON objects by key; without `old`, all fields with values."""
    for field in new.tracked_fields:
        is_app = field.related_model is App
        if field.primary_key or is_app or field.name in ("created_at", "position"):
            continue
        before = getattr(old, field.attname) if old else None
        after = getattr(new, field.attname)
        if before == after or (old is None and after in ("", None, [], {})):
            continue
        label = str(field.verbose_name)
        if field.name == "availability_constraints":
            yield FieldChange(label, rules_in_words(before), rules_in_words(after))
            continue
        if is_reference(field):
            before, after = (key and rows.get(key, str(REMOVED)) for key in (before, after))
        if isinstance(after, dict) and isinstance(before, dict | None):
            yield from _changed_keys(label, before or {}, after)
        else:
            yield FieldChange(label, value_in_words(before), value_in_words(after))


def _changed_keys(
    label: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[FieldChange]:
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield FieldChange(
                f"{label}: {key.replace('_', ' ')}",
                value_in_words(old.get(key)),
                value_in_words(new.get(key)),
            )


def rules_in_words(rules: Sequence[Mapping[str, Any]] | None) -> str:
    return "; ".join(map(rule_text, rules or ())) or NOTHING


def value_in_words(value: object) -> str:
    if value in ("", None, [], {}):
        return NOTHING
    if isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, datetime):
        return moment_words(value)
    if isinstance(value, dict | list):
        return json_words(value, NAMES_IN_WORDS)
    return str(NAMES_IN_WORDS.get(str(value)) or current_zone_name(str(value)))
