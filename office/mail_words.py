"""What an app's mails say: every kind of mail with its words, an editor with a live preview."""

import json
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from apps_config.models import App, Membership
from apps_config.office import RecordedAdmin
from apps_config.scope import is_allowed, scope_of
from bookings.models import Booking
from notifications.mail import BLOCKS, PLACEHOLDERS, SLUGS
from notifications.models import EmailTemplate
from notifications.own_words import PARTS, change_words, preview, template_record
from notifications.serializers.templates import PreviewSerializer, TemplateSerializer
from office.words import state_words

MOST_APPS = 200  # in the list to choose from; others are reached from their own page
MOST_BODY = 256 * 1024
LABELS = {"subject": "Subject", "text": "Text", "html": "HTML"}


class Part(NamedTuple):
    name: str
    label: str
    value: str
    shown: str  # what the form was opened with
    faults: list[str]


def kind_words(slug: str) -> str:
    """`Confirmed, to the customer`."""
    kind, _, recipient = slug.rpartition("_")
    return f"{state_words(kind).capitalize()}, to the {recipient}"


@admin.register(EmailTemplate)
class EmailTemplateAdmin(RecordedAdmin):
    """The rows are apps' own words; the pages show every kind, with or without a row."""

    app_paths = ("app",)
    least = {"add": None, "change": Membership.EDITOR, "delete": None}
    list_display = ("slug", "app", "subject", "updated_at")
    list_select_related = ("app",)
    search_fields = ("slug", "subject", "app__slug")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        name = "notifications_emailtemplate"
        own = [
            path("of/<uuid:app_id>/<slug:slug>/", wrap(self.edit), name=f"{name}_edit"),
            path("of/<uuid:app_id>/<slug:slug>/preview/", wrap(self.show), name=f"{name}_preview"),
        ]
        return own + super().get_urls()

    # --- all kinds --------------------------------------------------------------------------------
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """`?app=`: whose; the first by name where none is named."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        apps = scope_of(request).apps()
        app = self._asked_app(request, apps)
        records = []
        if app:
            own = {one.slug: one for one in EmailTemplate.objects.filter(app=app)}
            records = [
                template_record(app, slug, own.get(slug)) | {"words": kind_words(slug)}
                for slug in SLUGS
            ]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": "E-mail templates",
            "apps": list(apps[:MOST_APPS]),
            "app": app,
            "records": records,
        }
        return TemplateResponse(request, "office/templates.html", context)

    def _asked_app(self, request: HttpRequest, apps: Any) -> App | None:
        wanted = request.GET.get("app")
        if not wanted:
            return apps.first()
        try:
            app = apps.filter(pk=uuid.UUID(wanted)).first()
        except ValueError:
            app = None
        if app is None:
            raise Http404
        return app

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """A row's own page is its kind's."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return self.edit(request, row.app_id, row.slug)

    # --- one kind ---------------------------------------------------------------------------------
    def _page_of(self, app: App, slug: str) -> str:
        return reverse("admin:notifications_emailtemplate_edit", args=[app.pk, slug])

    def _find(self, request: HttpRequest, app_id: uuid.UUID, slug: str) -> App:
        if not self.has_view_permission(request):
            raise PermissionDenied
        app = scope_of(request).apps().filter(pk=app_id).first()
        if app is None or slug not in SLUGS:
            raise Http404
        return app

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
                return HttpResponseRedirect(self._page_of(app, slug))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": kind_words(slug),
            "app": app,
            "slug": slug,
            "record": record,
            "parts": [self._part(request, name, record, faults) for name in PARTS],
            "placeholders": [
                (f"{{{{ {name} }}}}", words, name in BLOCKS) for name, words in PLACEHOLDERS.items()
            ],
            "may_change": self._may_change(request, app),
            "history_of": self._last_row(app, slug),
            "preview_url": reverse(
                "admin:notifications_emailtemplate_preview", args=[app.pk, slug]
            ),
        }
        return TemplateResponse(request, "office/template.html", context)

    def _part(
        self, request: HttpRequest, name: str, record: Mapping[str, Any], faults: Mapping[str, Any]
    ) -> Part:
        posted = request.method == "POST" and name in request.POST
        value = request.POST[name] if posted else record[name]
        return Part(name, LABELS[name], value, record[name], list(map(str, faults.get(name, ()))))

    def _last_row(self, app: App, slug: str) -> int | None:
        """Whose history tells of this kind, also after it went back to the service's words."""
        rows = EmailTemplate.history.filter(app=app, slug=slug).order_by("-history_id")
        return rows.values_list("id", flat=True).first()

    def _save(self, request: HttpRequest, app: App, slug: str) -> Mapping[str, Any]:
        """Save what was changed since the page was opened; faults by part where that can't be."""
        if "reset" in request.POST:
            change_words(app, slug, dict.fromkeys(PARTS))
            messages.success(request, "Back to the service's words.")
            return {}
        given = {}
        for name in PARTS:
            value = _plain(request.POST.get(name, ""))
            if name in request.POST and value != _plain(request.POST.get(f"shown-{name}", "")):
                given[name] = value
        serializer = TemplateSerializer(data=given)
        if not serializer.is_valid():
            return serializer.errors
        change_words(app, slug, serializer.validated_data)
        messages.success(request, "Saved." if given else "Nothing was changed.")
        return {}

    def show(self, request: HttpRequest, app_id: uuid.UUID, slug: str) -> HttpResponse:
        """What POST /v2/templates/:slug/preview answers: `{data: {subject, text, html}}`, or 422
        with `{errors}`. A POST, as words are long; it keeps nothing."""
        app = self._find(request, app_id, slug)
        if request.method != "POST":
            return HttpResponse(status=405, headers={"Allow": "POST"})
        try:
            body = json.loads(request.body[:MOST_BODY])
        except ValueError:
            return JsonResponse({"errors": {"body": ["Must be JSON."]}}, status=422)
        serializer = PreviewSerializer(data=body)
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
        words = preview(app, slug, given, booking, now=timezone.now())
        return JsonResponse({"data": words._asdict()})


def _plain(text: str) -> str:
    """Forms send every line break as two characters."""
    return text.replace("\r\n", "\n")
