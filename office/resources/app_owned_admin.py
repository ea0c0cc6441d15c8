"""The base of admins of what an app owns: the new row's app, its page after saving, its rules."""

from collections.abc import Iterable
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.dates import WEEKDAYS
from django.utils.html import format_html_join
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from apps_config.models import App, Membership
from availability.core.constraints import WEEKLY_KINDS, ConstraintRule, render_constraint
from office.base.api_forms import ApiForm
from office.base.dates import moment_words
from office.base.model_admin import PARTS_FORM, ServiceBackedAdmin
from office.base.model_admin_pages import Row
from office.base.opening_hours_text import hours_of_rules
from office.base.rule_rows import rule_text
from office.base.scope import read_once, scope_of
from office.resources.resource_form import stored_rules

MAX_OFFERED = 50


@read_once
def only_app(request: HttpRequest) -> App | None:
    """Return the app that the account may edit, if there is a single one."""
    apps = list(scope_of(request).apps(Membership.EDITOR).order_by()[:2])
    return apps[0] if len(apps) == 1 else None


class AppOwnedAdmin(ServiceBackedAdmin[Row]):
    """Rows with a fixed app, chosen among the apps that the account may edit.

    A new row has a short form (`add_form`).
    """

    fixed_fields = autocomplete_fields = chosen_fields = ("app",)
    change_form_template = PARTS_FORM
    add_form: ClassVar[type[ApiForm]]

    class Media:
        css = {"all": ("office/forms.css", "office/time.css")}
        js = (
            *("office/rows.js", "office/json.js", "office/forms.js", "office/copy.js"),
            "office/rules.js",
        )

    # For accounts that may not change the row.
    @display(description=_("External id"))
    def id_elsewhere(self, row: Any) -> str:
        return row.external_id or ""

    @display(description=_("created"), ordering="created_at")
    def creation_time(self, row: Any) -> str:
        return moment_words(row.created_at)

    @display(description=_("deleted"))
    def deletion_time(self, row: Any) -> str:
        return moment_words(row.deleted_at)

    def get_form(
        self, request: HttpRequest, obj: Row | None = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm]:
        if obj:
            return super().get_form(request, obj, change, **kwargs)
        kwargs["form"] = self.add_form
        form = cast(type[ApiForm], super().get_form(request, obj, change, **kwargs))
        form.only_app = only_app(request)
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Row | None = None) -> Any:
        if obj:
            return super().get_fieldsets(request, obj)
        app = () if only_app(request) else ("app",)
        return ((None, {"fields": (*app, *self.add_form.asked)}),)

    def get_inlines(self, request: HttpRequest, obj: Row | None) -> Any:
        return self.inlines if obj else ()

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """A new row's page opens after saving: no second button says so."""
        if not context.get("original"):
            context["show_save_and_continue"] = False
        return super().render_change_form(request, context, *args, **kwargs)

    def response_add(
        self, request: HttpRequest, obj: Row, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Open the page of the new row."""
        if "_addanother" in request.POST or "_popup" in request.POST:
            return super().response_add(request, obj, post_url_continue)
        messages.success(request, self.added_message(obj))
        return redirect(self.url_of(obj))

    def added_message(self, row: Row) -> str:
        raise NotImplementedError


# Hours and dates of resources and schedules, for accounts that may not change them.
@display(description=_("Weekly hours"))
def shown_hours(page: AppOwnedAdmin, row: Any) -> str:
    days = zip(WEEKDAYS.values(), hours_of_rules(stored_rules(row)), strict=True)
    closed = gettext("closed")
    return format_html_join("", "{}: {}<br>", ((day, text or closed) for day, text in days))


@display(description=_("Dates"))
def shown_dates(page: AppOwnedAdmin, row: Any) -> str:
    return rule_lines(rule for rule in stored_rules(row) if rule.kind not in WEEKLY_KINDS)


def rule_lines(rules: Iterable[ConstraintRule]) -> str:
    texts = (rule_text(render_constraint(rule)) for rule in rules)
    return format_html_join("", "{}<br>", ((text,) for text in texts))
