"""Names and help texts of models in the language of the page.

The models' texts are English, and only the back office shows them. At start they become lazy
translations; migrations keep the English ones.
"""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import flatten, flatten_fieldsets
from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from office.base.registered_pages import registered_pages

PACKAGES = frozenset(
    {
        *("apps_config", "availability", "bookings", "notifications", "external_calendars"),
        "usersessions",
    }
)


# Models of other packages: one name per thing on all pages.
RENAMED = {"user session": "session", "provider client": "calendar client"}


def translate_model_labels() -> None:
    """Replace the texts of the models by lazy translations."""
    for model in apps.get_models():
        if model._meta.app_label in PACKAGES:
            _translate(model)


def _translate(model: type[models.Model]) -> None:
    options: Any = model._meta
    options.verbose_name = RENAMED.get(options.verbose_name, options.verbose_name)
    if "verbose_name_plural" not in options.original_attrs:
        # Django's own plural adds an s to the name in any language.
        options.verbose_name_plural = _lazy(f"{options.verbose_name}s")
    options.verbose_name = _lazy(options.verbose_name)
    options.verbose_name_plural = _lazy(options.verbose_name_plural)
    columns: Any = (*options.local_fields, *options.local_many_to_many)
    for column in columns:
        column.verbose_name = _lazy(column.verbose_name)
        column.help_text = _lazy(column.help_text)
        if column.choices:
            column.choices = [(value, _lazy(text)) for value, text in column.choices]


def _lazy(text: Any) -> Any:
    return text if isinstance(text, Promise) or not text else _(text)


# --- What has to be translated --------------------------------------------------------------------
def shown_labels() -> set[str]:
    """Return the models' texts that pages of the back office show."""
    found: set[str] = set()
    for page in registered_pages(admin.site):
        found |= _labels_of(page)
        for inline in page.inlines:
            found |= _labels_of(inline)
    return found


def _labels_of(page: Any) -> set[str]:
    """Return the texts of an admin's or inline's model."""
    options = page.model._meta
    names = _names_on_pages(page)
    columns = [column for column in options.fields if column.name in names]
    tracked = page.model.history.model.tracked_fields if hasattr(page.model, "history") else ()
    texts = [options.verbose_name, options.verbose_name_plural]
    texts += [column.verbose_name for column in (*columns, *tracked)]
    texts += [column.help_text for column in columns if column.help_text]
    texts += [text for column in columns for _value, text in column.flatchoices]
    return {str(text) for text in texts}


def _names_on_pages(page: Any) -> set[str]:
    """Return the names in the list, the filters and the form."""
    fieldsets = flatten_fieldsets(page.fieldsets) if page.fieldsets else flatten(page.fields or ())
    editable = [column.name for column in page.model._meta.fields if column.editable]
    filters = [
        each[0] if isinstance(each, tuple) else each
        for each in _attribute_items(page, "list_filter")
    ]
    return {
        *(name for name in filters if isinstance(name, str)),
        *(name for name in _attribute_items(page, "list_display") if isinstance(name, str)),
        *(fieldsets or page.form.base_fields or editable),
        *page.readonly_fields,
    }


def _attribute_items(page: Any, name: str) -> Iterator[Any]:
    return iter(getattr(page, name, ()))
