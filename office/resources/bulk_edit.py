"""Weekly hours, dates, time zone and tags of several resources at once, with a preview."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext, pgettext
from django.utils.translation import gettext_lazy as _

from apps_config.models import Membership
from availability.core.constraints import (
    DAY_NAMES,
    WEEKLY_KINDS,
    ConstraintRules,
    render_constraint,
)
from availability.models import Resource
from availability.serializers.resources import ResourceSerializer
from availability.services import change_resource
from common.api.query import SearchTerm
from common.api.search_conditions import RESOURCE_SEARCH
from common.api.serializers import read_values_as
from common.errors import Refusal
from common.time.zone_names import current_zone_name
from office.base.form_fields import LinesField, ZoneField
from office.base.model_admin import OfficeAdmin, refusal_words
from office.base.model_admin_pages import BACK, is_confirmed
from office.base.opening_hours_text import (
    hours_of_rules,
    hours_words,
    merge_hours_and_dates,
    rules_of_hours,
    weekly_rules,
)
from office.base.permissions import visible_resources
from office.base.rule_rows import RowsError, read_rows, rule_text
from office.explain.rules_preview import MAX_LOOKED_AT, find_bookings_outside
from office.resources.hours_field import ChangedDaysField
from office.resources.resource_form import checked, stored_rules

MAX_RESOURCES = 100
MAX_CHOSEN = 10  # so many resources are all chosen at the start
CHANGE = "availability.change_resource"
MAX_TAGGED, MAX_TAGS = 500, 50  # resources whose tags are offered, and these
DATES = ("closed_on", "closed_until", "extra_day", "extra_hours")
FIELDS = ("resources", "zone", "added_tags", "removed_tags", *DATES)
# Column of a row of rules -> field of the form, by kind.
DATE_COLUMNS = {
    "closed_on": {"date": "closed_on", "last_date": "closed_until"},
    "extra_hours": {"date": "extra_day", "hours": "extra_hours"},
}
DATE = {"class": "office-input", "type": "date"}
HOURS = tuple(f"hours_{day}" for day in range(len(DAY_NAMES)))


class BulkEditForm(forms.Form):
    resources = forms.ModelMultipleChoiceField(
        Resource.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Select at least one resource.")},
    )
    hours = ChangedDaysField(
        label=_("Weekly hours"),
        help_text=_(
            "For example 9:00-12:00, 13:00-17:00, or closed. An empty day keeps its hours;"
            " of a resource without hours it is closed."
        ),
    )
    closed_on = forms.DateField(label=_("Closed on…"), required=False, widget=forms.DateInput(DATE))
    closed_until = forms.DateField(
        label=_("Last day (optional)"), required=False, widget=forms.DateInput(DATE)
    )
    extra_day = forms.DateField(
        label=_("Extra hours on…"), required=False, widget=forms.DateInput(DATE)
    )
    extra_hours = forms.CharField(
        label=_("Hours"),
        required=False,
        max_length=200,
        widget=forms.TextInput({"class": "office-input", "placeholder": "10:00-14:00"}),
    )
    # Not `timezone`, which the script fills with the browser's zone on the form of a new resource.
    zone = ZoneField(
        label=_("Time zone"),
        required=False,
        help_text=_("Type a city or an offset. Empty: no change."),
    )
    added_tags = LinesField(label=_("Add tags"), help_text=_("Separate them with Enter."))
    removed_tags = LinesField(label=_("Remove tags"), help_text=_("Separate them with Enter."))

    def __init__(self, *args: Any, offered: QuerySet[Resource], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = cast(forms.ModelMultipleChoiceField, self.fields["resources"])
        choices.queryset = offered

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        wants = ("hours", "zone", "added_tags", "removed_tags", *DATES)
        if not self.errors and not any(map(given.get, wants)):
            self.add_error(None, gettext("Enter hours, dates, a time zone or tags."))
        given["date_rules"] = self._read_dates(given)
        zone = ResourceSerializer(data={"timezone": given.get("zone") or "UTC"}, partial=True)
        if not zone.is_valid():
            self.add_error("zone", [str(fault) for fault in zone.errors["timezone"]])
        return given

    def _read_dates(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rules of the dates; adds the errors of dates that are none."""
        rules: list[dict[str, Any]] = []
        for kind, columns in DATE_COLUMNS.items():
            if not any(given.get(field) for field in columns.values()):
                continue
            row = {column: str(given.get(field) or "") for column, field in columns.items()}
            try:
                rules += [render_constraint(rule) for rule in read_rows([{"kind": kind} | row])]
            except RowsError as error:
                for column, sentences in error.errors[0].items():
                    self.add_error(columns.get(column, kind), sentences)
        return rules


def changes_of(resource: Resource, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the API's PUT /resources/:id would be sent for this resource. Reads its rules."""
    body: dict[str, Any] = {}
    if given["zone"] and given["zone"] != resource.timezone:
        body["timezone"] = given["zone"]
    removed = given["removed_tags"].splitlines()
    kept = [tag for tag in resource.tags if tag not in removed]
    tags = list(dict.fromkeys([*kept, *given["added_tags"].splitlines()]))
    if tags != resource.tags:
        body["tags"] = tags
    rules = stored_rules(resource)
    stored, weekly = hours_of_rules(rules), weekly_rules(rules)
    # The first hours of a resource that is always open are all its hours.
    kept = stored if weekly or resource.schedule else [""] * len(DAY_NAMES)
    days = [given["hours"].get(day, text) for day, text in enumerate(kept)]
    dates = [render_constraint(rule) for rule in rules if rule not in weekly]
    new_dates = [rule for rule in given["date_rules"] if rule not in dates]
    hours = rules_of_hours(days) if given["hours"] and days != stored else None
    if hours is not None or new_dates:
        merged = merge_hours_and_dates(rules, hours, [*dates, *new_dates])
        body["availability_constraints"] = merged
    return body


def save_changes(resource: Resource, body: Mapping[str, Any]) -> None:
    """Save through the API's serializer and service. Raises Refusal."""
    texts = {name: body[name] for name in ("timezone", "tags") if name in body}
    given = dict(read_values_as(ResourceSerializer, texts, partial=True))
    if "availability_constraints" in body:
        given["availability_constraints"] = checked(body["availability_constraints"])
    change_resource(resource, given)


def change_lines(resource: Resource, body: Mapping[str, Any]) -> Iterator[str]:
    """Yield each change in words: `Time zone: Europe/Berlin → Asia/Tokyo`. Raises Invalid."""
    if "availability_constraints" in body:
        stored, rules = stored_rules(resource), checked(body["availability_constraints"])
        old, new = hours_words(hours_of_rules(stored)), hours_words(hours_of_rules(rules))
        if old != new:
            yield gettext("Hours: %(old)s → %(new)s") % {"old": old, "new": new}
        for rule in rules:
            if rule not in stored and rule.kind not in WEEKLY_KINDS:
                yield rule_text(render_constraint(rule))
    if "timezone" in body:
        old = current_zone_name(resource.timezone)
        new = current_zone_name(body["timezone"])
        yield gettext("Time zone: %(old)s → %(new)s") % {"old": old, "new": new}
    if "tags" in body:
        none = pgettext("instead of tags", "none")
        old, new = ", ".join(resource.tags) or none, ", ".join(body["tags"]) or none
        yield gettext("Tags: %(old)s → %(new)s") % {"old": old, "new": new}


def show_bulk_edit(page: OfficeAdmin[Resource], request: HttpRequest) -> HttpResponse:
    """Show the form; a POST shows the changes, and with CONFIRMED saves them."""
    offered = visible_resources(request, least=Membership.EDITOR).order_by("name", "id")
    offered = offered.select_related("app", "schedule")
    tags = _known_tags(offered)
    chosen_tag = request.GET.get("tag", "")
    if chosen_tag:
        offered = offered.filter(
            RESOURCE_SEARCH["tags"](SearchTerm("tags", chosen_tag, False, False))
        )
    form = _form(request, offered)
    if request.method == "POST" and BACK not in request.POST and form.is_valid():
        rows = list(form.cleaned_data["resources"])[:MAX_RESOURCES]
        changes = [(row, changes_of(row, form.cleaned_data)) for row in rows]
        if is_confirmed(request):
            return _save(page, request, changes)
        return _show_preview(page, request, changes, form.cleaned_data["zone"])
    return page.show_page(
        request,
        "office/bulk_edit.html",
        title=gettext("Change several resources"),
        form=form,
        chosen={str(pk) for pk in form["resources"].value() or ()},
        resources=list(offered[:MAX_RESOURCES]),
        tags=tags,
        chosen_tag=chosen_tag,
        fields=[form[name] for name in ("hours", "zone", "added_tags", "removed_tags")],
        date_rows=[[form[name] for name in names] for names in (DATES[:2], DATES[2:])],
    )


def _known_tags(offered: QuerySet[Resource]) -> list[str]:
    """Return tags of the resources, by name."""
    rows = offered.exclude(tags=[]).values_list("tags", flat=True)
    return sorted({tag for tags in rows[:MAX_TAGGED] for tag in tags})[:MAX_TAGS]


def _form(request: HttpRequest, offered: QuerySet[Resource]) -> BulkEditForm:
    if request.method == "POST":
        return BulkEditForm(request.POST, offered=offered)
    ids = _ids_in_query(request)
    if not ids:
        first = list(offered.values_list("pk", flat=True)[: MAX_CHOSEN + 1])
        ids = first if len(first) <= MAX_CHOSEN else []
    if not ids and "tag" in request.GET:
        ids = list(offered.values_list("pk", flat=True)[:MAX_RESOURCES])
    return BulkEditForm(initial={"resources": ids}, offered=offered)


def _show_preview(
    page: OfficeAdmin[Resource],
    request: HttpRequest,
    changes: Sequence[tuple[Resource, Mapping[str, Any]]],
    zone: str,
) -> HttpResponse:
    lines = list(_preview_lines(changes, zone))
    count = sum(bool(body) for _, body in changes)
    return page.ask_confirmation(
        request,
        None,
        title=ngettext("Change %(count)s resource?", "Change %(count)s resources?", count)
        % {"count": count},
        sentence=gettext("No booking is moved. These are the changes:"),
        button=gettext("Save"),
        button_style="primary",
        lines=lines,
        goes_back_to_form=True,
        repeated=(*FIELDS, *HOURS),
    )


def _save(
    page: OfficeAdmin[Resource],
    request: HttpRequest,
    changes: Sequence[tuple[Resource, Mapping[str, Any]]],
) -> HttpResponse:
    """Save each resource for itself: a refusal does not affect the others."""
    done = 0
    for row, body in changes:
        if not body:
            continue
        try:
            save_changes(row, body)
            done += 1
        except Refusal as refusal:
            messages.error(request, f"{row.name}: {refusal_words(refusal)}")
    messages.success(request, gettext("Changed resources: %(count)s.") % {"count": done})
    return HttpResponseRedirect(page.list_url())


def _preview_lines(
    changes: Sequence[tuple[Resource, Mapping[str, Any]]], zone: str
) -> Iterator[str]:
    """Yield a text for each resource: name, changes and the bookings outside the new hours."""
    edited: dict[Resource, ConstraintRules] = {}
    texts: dict[Resource, list[str]] = {}
    for resource, body in changes:
        try:
            texts[resource] = list(change_lines(resource, body)) or [gettext("No change.")]
        except Refusal as refusal:
            refused = gettext("Will be refused: %(reason)s")
            texts[resource] = [refused % {"reason": refusal_words(refusal)}]
            continue
        if "availability_constraints" in body:
            edited[resource] = checked(body["availability_constraints"])
    found, are_all = find_bookings_outside(edited, zone, timezone.now())
    for resource, outside in found.items():
        sentence = gettext("Outside the new hours: %(booking)s")
        texts[resource] += [sentence % {"booking": text} for text in outside]
    for resource, lines in texts.items():
        yield "\n".join([resource.name, *lines])
    if not are_all:
        sentence = ngettext(
            "Only the next %(count)s booking was checked.",
            "Only the next %(count)s bookings were checked.",
            MAX_LOOKED_AT,
        )
        yield sentence % {"count": number_format(MAX_LOOKED_AT, force_grouping=True)}


def _ids_in_query(request: HttpRequest) -> list[uuid.UUID]:
    """Return the ids in `?ids=`; none if one of them is malformed."""
    try:
        return [uuid.UUID(text) for text in request.GET.get("ids", "").split(",") if text]
    except ValueError:
        return []
