"""E-mail templates of an app: the list of kinds, and an editor with a live preview."""

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from rest_framework.serializers import ValidationError

from apps_config.models import App
from bookings.models import Booking
from notifications.mail import BLOCKS, PLACEHOLDERS, SLUGS
from notifications.mail.serializers import (
    EmailTemplateSerializer,
    PreviewSerializer,
    WrittenTextsSerializer,
)
from notifications.mail.template_editing import (
    PARTS,
    WRITTEN,
    change_override,
    preview_mail,
    template_record,
    written_mail,
)
from notifications.models import Delivery, EmailTemplate
from office.base.labels import template_words
from office.base.model_admin import RowPageAdmin
from office.base.model_admin_pages import ExtraPage, find_row
from office.base.row_choices import CurrentRowForm
from office.base.scope import is_allowed, scope_of

MAX_BODY = 256 * 1024
# The same words as the API's PLACEHOLDERS, for people.
PLACEHOLDER_WORDS = {
    "name": _("the recipient's name"),
    "what": _("the event's title"),
    "where": _("the event's place"),
    "conference_url": _("the link of the video call"),
    "description": _("the event's description"),
    "when": _("date and time of the event, with its zone"),
    "old_when": _("date and time before the booking was moved"),
    "old_resource": _("the names of the resources that a move replaced"),
    "date": _("the start date"),
    "time": _("the start time"),
    "zone": _("the time zone of date and time"),
    "short_when": _("start date and time, short, for subjects"),
    "resource": _("the names of the resources"),
    "project": _("the project's name"),
    "customer": _("the customers' names"),
    "customer_email": _("the first customer's address"),
    "customer_phone": _("the first customer's number"),
    "app": _("the sender's name"),
    "contact_name": _("the app's contact"),
    "contact_email": _("the contact's address"),
    "booking_id": _("the booking's id"),
    "reminder": _("the subject of the reminder"),
    "confirm_url": _("the link to confirm, if the recipient may confirm"),
    "decline_url": _("the link to decline"),
    "reschedule_url": _("the customer's link to choose another time"),
    "cancel_url": _("the customer's link to cancel"),
    "pay_url": _("the customer's link to pay, while the payment is awaited"),
    "accent_dark": _("the app's accent colour, for dark screens"),
    "language": _("the language code"),
    "direction": _("ltr or rtl"),
    "details": _("what, when, where, with whom: a table in HTML"),
    "message": _("the message of the person who made the change"),
    "actions": _("the recipient's buttons (in text: links)"),
    "links": _(
        "for customers: links to their calendars, a map and their bookings; for owners: a link to"
        " the booking"
    ),
    "logo": _("the app's logo (in text: nothing)"),
    "footer": _("the app's postal address, imprint and privacy notice"),
}
# Those that a person inserts into a text: no blocks, and no links, which are buttons of the layout.
VARIABLES = (
    *("name", "what", "when", "date", "time", "where", "resource", "customer", "app"),
    *("project", "description", "old_when", "contact_name", "contact_email"),
)
VARIABLE_LABELS = {
    "name": _("Recipient's name"),
    # Translators: what is booked, such as "Haircut".
    "what": pgettext_lazy("variable", "What"),
    "when": _("Date, time and zone"),
    "date": _("Date"),
    "time": pgettext_lazy("variable", "Time"),
    "where": _("Place"),
    "resource": _("Resource"),
    "customer": _("Customer"),
    "app": _("Sender's name"),
    "project": _("Project"),
    "description": _("Description"),
    "old_when": _("Date and time before the move"),
    "contact_name": pgettext_lazy("variable", "Contact"),
    "contact_email": _("Contact's e-mail"),
}
LABELS = {
    "subject": _("Subject"),
    "heading": _("Heading"),
    "body": _("Text"),
    "text": _("Plain text"),
    "html": _("HTML"),
}
ROWS = {"body": 8, "text": 10, "html": 14}


class EditorSerializer(WrittenTextsSerializer, EmailTemplateSerializer):
    """The parts of the editor: text and HTML, or heading and body, from which they are made."""

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.keys() & set(WRITTEN) and given.keys() & {"text", "html"}:
            fault = gettext("Change either the heading and text, or the parts under Advanced.")
            raise ValidationError({"text": [fault]})
        return super().validate(given)


class EditorPreviewSerializer(WrittenTextsSerializer, PreviewSerializer):
    pass


class TemplatePart(NamedTuple):
    name: str
    label: str
    value: str
    shown: str  # the value when the form was opened
    faults: list[str]
    rows: int  # of a text with several lines; else 0


@admin.register(EmailTemplate)
class EmailTemplateAdmin(RowPageAdmin[EmailTemplate]):
    """Rows are an app's template overrides; the pages show every kind, with or without a row."""

    app_paths = ("app",)
    never = frozenset({"add", "delete"})
    list_display = ("slug", "app", "subject", "updated_at")
    list_select_related = ("app",)
    search_fields = ("slug", "subject", "app__slug")

    def extra_pages(self) -> Iterable[ExtraPage]:
        return (
            ExtraPage("of/<uuid:app_id>/<slug:slug>/", self.edit, "edit", "view"),
            ExtraPage("of/<uuid:app_id>/<slug:slug>/preview/", self.preview, "preview", "view"),
        )

    def row_title(self, row: EmailTemplate) -> str:
        return template_words(row.slug)

    # --- List -------------------------------------------------------------------------------------
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the templates of `?app=`; default: the first app by name."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        apps = scope_of(request).apps()
        app = self._requested_app(request, apps)
        return self.show_page(
            request,
            "office/templates.html",
            title=gettext("E-mail templates"),
            choice=CurrentRowForm(
                request,
                name="app",
                label=gettext("App"),
                column=self.opts.get_field("app"),
                rows=apps,
                chosen=app,
            )
            if scope_of(request).has_several_apps
            else None,
            app=app,
            records=_records(app) if app else [],
        )

    def _requested_app(self, request: HttpRequest, apps: QuerySet[App]) -> App | None:
        app_id = request.GET.get("app")
        if not app_id:
            return apps.first()
        return find_row(apps, app_id)

    def show_row(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Redirect to the editor of the row's kind."""
        row = self.find(request, object_id)
        return redirect("admin:notifications_emailtemplate_edit", row.app_id, row.slug)

    # --- Editor -----------------------------------------------------------------------------------
    def _find(self, request: HttpRequest, app_id: uuid.UUID, slug: str) -> App:
        if slug not in SLUGS:
            raise Http404
        return find_row(scope_of(request).apps(), app_id)

    def _may_change(self, request: HttpRequest, app: App) -> bool:
        return is_allowed(request, "notifications.change_emailtemplate", app.pk)

    def edit(self, request: HttpRequest, app_id: uuid.UUID, slug: str) -> HttpResponse:
        app = self._find(request, app_id, slug)
        own = EmailTemplate.objects.filter(app=app, slug=slug).first()
        record = template_record(app, slug, own)
        faults: Mapping[str, list[str]] = {}
        if request.method == "POST":
            if not self._may_change(request, app):
                raise PermissionDenied
            faults = self._save(request, app, slug)
            if not faults:
                return redirect("admin:notifications_emailtemplate_edit", app.pk, slug)
        written = written_mail(app, slug, own)
        shown = record | (written._asdict() if written else {})
        names = ["subject", *(WRITTEN if written else ()), "text", "html"]
        parts = [self._part(request, name, shown, faults) for name in names]
        advanced = [part for part in parts if part.name in ("text", "html")]
        return self.show_page(
            request,
            "office/template.html",
            title=template_words(slug),
            app=app,
            slug=slug,
            is_reminder=slug.startswith(Delivery.REMINDER),
            record=record,
            parts=parts,
            simple=[part for part in parts if part not in advanced],
            advanced=advanced,
            is_written=written is not None,
            opens_advanced=written is None or any(part.faults for part in advanced),
            variables=[(f"{{{{ {name} }}}}", VARIABLE_LABELS[name]) for name in VARIABLES],
            placeholders=[
                (f"{{{{ {name} }}}}", PLACEHOLDER_WORDS[name], name in BLOCKS)
                for name in PLACEHOLDERS
            ],
            may_change=self._may_change(request, app),
            history_of=self._latest_template_id(app, slug),
            preview_url=reverse("admin:notifications_emailtemplate_preview", args=[app.pk, slug]),
        )

    def _part(
        self, request: HttpRequest, name: str, record: Mapping[str, Any], faults: Mapping[str, Any]
    ) -> TemplatePart:
        posted = request.method == "POST" and name in request.POST
        value = request.POST[name] if posted else record[name]
        return TemplatePart(
            name,
            str(LABELS[name]),
            value,
            record[name],
            list(map(str, faults.get(name, ()))),
            ROWS.get(name, 0),
        )

    def _latest_template_id(self, app: App, slug: str) -> int | None:
        """Return the latest row id, whose history covers this kind, also after a reset."""
        rows = EmailTemplate.history.filter(app=app, slug=slug).order_by("-history_id")
        return rows.values_list("id", flat=True).first()

    def _save(self, request: HttpRequest, app: App, slug: str) -> Mapping[str, Any]:
        """Save the parts changed since the page was opened; return errors by part."""
        if "reset" in request.POST:
            change_override(app, slug, dict.fromkeys(PARTS))
            messages.success(request, gettext("The default template is restored."))
            return {}
        given = {}
        for name in (*PARTS, *WRITTEN):
            value = _normalise_line_breaks(request.POST.get(name, ""))
            shown = _normalise_line_breaks(request.POST.get(f"shown-{name}", ""))
            if name in request.POST and value != shown:
                given[name] = value
        serializer = EditorSerializer(data=given)
        if not serializer.is_valid():
            return serializer.errors
        change_override(app, slug, serializer.validated_data)
        messages.success(request, gettext("Saved.") if given else gettext("Nothing was changed."))
        return {}

    def preview(self, request: HttpRequest, app_id: uuid.UUID, slug: str) -> HttpResponse:
        """Return `{data: {subject, text, html}}`, or 422 with `{errors}`, as POST
        /v2/templates/:slug/preview does.

        A POST, because texts are long; it stores nothing.
        """
        app = self._find(request, app_id, slug)
        if request.method != "POST":
            return HttpResponse(status=405, headers={"Allow": "POST"})
        try:
            body = json.loads(request.body[:MAX_BODY])
        except ValueError:
            return JsonResponse({"errors": {"body": ["Must be JSON."]}}, status=422)
        serializer = EditorPreviewSerializer(data=body)
        if not serializer.is_valid():
            return JsonResponse({"errors": serializer.errors}, status=422)
        given = dict(serializer.validated_data)
        booking_id = given.pop("booking_id", None)
        booking = None
        if booking_id:
            rows = Booking.objects.for_app(app)
            rows = rows.select_related("app", "event", "resource", "project")
            booking = rows.filter(pk=booking_id).first()
            if booking is None:
                faults = {"booking_id": ["There is no such booking."]}
                return JsonResponse({"errors": faults}, status=422)
        words = preview_mail(app, slug, given, booking, now=timezone.now())
        return JsonResponse({"data": words._asdict()})


def _records(app: App) -> list[dict[str, Any]]:
    own = {row.slug: row for row in EmailTemplate.objects.filter(app=app)}
    return [
        template_record(app, slug, own.get(slug)) | {"words": template_words(slug)}
        for slug in SLUGS
    ]


def _normalise_line_breaks(text: str) -> str:
    """Normalise line breaks: forms send CRLF."""
    return text.replace("\r\n", "\n")
