"""The search and the filters of a list in words."""

from typing import Any, NamedTuple

from django.contrib.admin import ListFilter, RelatedFieldListFilter, SimpleListFilter
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.core.exceptions import ValidationError
from django.utils.translation import gettext

from office.base.list_filters import DaysFilter
from office.base.registered_pages import page_of


class AppliedFilter(NamedTuple):
    """`parameters`: those of the list's address that set the filter."""

    title: str
    value: str
    parameters: tuple[str, ...]


def applied_filters(changelist: ChangeList) -> list[AppliedFilter]:
    """Return the list's search, then its filters. One query for each filter by a row."""
    search = AppliedFilter(gettext("Search"), changelist.query, (SEARCH_VAR,))
    filters = (
        AppliedFilter(
            str(spec.title),
            _value_words(spec, changelist),
            tuple(str(name) for name in spec.expected_parameters()),
        )
        for spec in changelist.filter_specs
    )
    return [each for each in (search, *filters) if each.value]


def _value_words(spec: ListFilter, changelist: ChangeList) -> str:
    """Return the chosen value; "" if the filter is not set."""
    if isinstance(spec, SimpleListFilter):
        chosen = {str(value): str(words) for value, words in spec.lookup_choices}
        return chosen.get(str(spec.value()), "")
    if not any(spec.used_parameters.values()):
        return ""
    if isinstance(spec, DaysFilter):
        return spec.days_words()
    if isinstance(spec, RelatedFieldListFilter):
        return _row_words(spec, changelist)
    choices: Any = spec.choices(changelist)
    return next((str(one["display"]) for one in choices if one["selected"]), "")


def _row_words(spec: RelatedFieldListFilter, changelist: ChangeList) -> str:
    """Return the row that the list is filtered by; its id if the account may not see the row."""
    given = spec.lookup_val
    value = given[-1] if isinstance(given, list) else given
    page = page_of(changelist.model_admin.admin_site, spec.field.related_model)
    try:
        row = page.get_queryset(spec.request).filter(pk=value).first() if page else None
    except ValidationError:
        row = None
    return str(row or value or "")
