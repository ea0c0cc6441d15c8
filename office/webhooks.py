"""Webhooks in the back office: where an app's changes are called out to, and how that goes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from apps_config.models import App, Membership
from apps_config.office import AppFilter, RecordedAdmin, ServedAdmin
from apps_config.scope import scope_of
from bookings.graphs import GRAPHS
from notifications.models import Delivery, Webhook
from notifications.planning import RESCHEDULED
from notifications.serializers.webhooks import EVENTS, NewWebhookSerializer, WebhookSerializer
from notifications.services import (
    change_webhook,
    create_webhook,
    delete_webhook,
    rotate_secret,
    send_test,
)
from office.asking import ask_first, find_to_change
from office.shown_once import show_secret
from office.words import DELIVERY_COLOURS, state_words
from scheduling.api.errors import NotFound

LATEST = 20
COUNTED = 1000
FIELDS = ("url", "method", "graph", "states", "expected_response_code", "active", "description")


class WebhookForm(forms.ModelForm):
    """As the API takes it. What a field showed comes back with it: only changes are saved."""

    url = forms.CharField(
        label="Address",
        help_text="Public, http or https. Every call is signed.",
        widget=UnfoldAdminTextInputWidget,
    )
    graph = forms.ChoiceField(
        label="Graph",
        required=False,
        help_text="Bookings of which kind it is told about.",
        choices=[("", "any"), *((name, name) for name in GRAPHS)],
        widget=UnfoldAdminSelectWidget,
    )
    states = forms.MultipleChoiceField(
        label="States",
        required=False,
        help_text="When a booking comes into one of these. None ticked: always.",
        choices=[(name, state_words(name)) for name in EVENTS],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta:
        model = Webhook
        fields = ("app", *FIELDS)
        labels = {"active": "Switched on", "expected_response_code": "Expected code"}
        help_texts = {
            "expected_response_code": "The only status that counts as success. Empty: any 2xx.",
            "active": "Switched on again it starts with a clean slate.",
            "description": "What it is for.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in FIELDS:
            if name in self.fields:
                self.fields[name].show_hidden_initial = True

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        is_new = self.instance._state.adding
        body = {name: given[name] for name in FIELDS if name in given}
        if not is_new:
            body = {name: value for name, value in body.items() if name in self.changed_data}
        if "graph" in body:
            body["graph"] = body["graph"] or None
        if "description" in body:
            body["description"] = body["description"].replace("\r\n", "\n")
        serializer = (NewWebhookSerializer if is_new else WebhookSerializer)(data=body)
        self.given = serializer.validated_data if serializer.is_valid() else {}
        for name, faults in serializer.errors.items():
            if name not in self.errors:
                self.add_error(name if name in self.fields else None, in_lines(faults))
        return given


def in_lines(faults: Any) -> list[str]:
    if isinstance(faults, Mapping):
        return [str(one) for of_item in faults.values() for one in of_item]
    return [str(fault) for fault in faults]


@admin.register(Webhook)
class WebhookAdmin(ServedAdmin, RecordedAdmin):
    app_paths = ("app",)
    form = WebhookForm
    list_display = ("url", "app", "shown_graph", "shown_state", "failures", "created_at")
    list_filter = ("active", "graph", ("app", AppFilter))
    list_select_related = ("app",)
    search_fields = ("id", "url", "description", "app__slug")
    ordering = ("-id",)
    sortable_by = ()
    autocomplete_fields = ("app",)
    readonly_fields = ("id", "shown_state", "failures", "failing_since", "created_at", "updated_at")
    fieldsets = (
        (None, {"fields": ("app", "url", "method", "expected_response_code", "active")}),
        ("What it is told", {"fields": ("graph", "states")}),
        ("About it", {"fields": ("description", *readonly_fields)}),
    )
    add_fieldsets = (
        (None, {"fields": ("app", "url", "method", "expected_response_code", "description")}),
        ("What it is told", {"fields": ("graph", "states")}),
    )
    change_form_outer_before_template = "office/webhook_graphs.html"
    change_form_outer_after_template = "office/webhook_log.html"
    actions = ("switch_on", "switch_off")

    class Media:
        js = ("office/webhook.js",)

    # --- the list ---------------------------------------------------------------------------------
    @display(description="graph")
    def shown_graph(self, webhook: Webhook) -> str:
        states = ", ".join(state_words(state) for state in webhook.states)
        return f"{webhook.graph or 'any'}{f': {states}' if states else ''}"

    @display(description="state", label={"on": "success", "off": "danger", "deleted": "warning"})
    def shown_state(self, webhook: Webhook) -> tuple[str, str]:
        if webhook.deleted_at:
            return "deleted", "deleted"
        if webhook.active:
            return "on", "on"
        return "off", f"off: {webhook.disabled_reason}" if webhook.disabled_reason else "off"

    # --- rights -----------------------------------------------------------------------------------
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What is deleted stays as it was."""
        return not (obj and obj.deleted_at) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return not (obj and obj.deleted_at) and super().has_delete_permission(request, obj)

    def has_switch_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.readonly_fields, "app") if obj else self.readonly_fields

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "app":
            field.widget.can_add_related = field.widget.can_change_related = False
            field.widget.can_view_related = False
        return field

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        initial = super().get_changeform_initial_data(request)
        apps = list(scope_of(request).apps(Membership.EDITOR)[:2])
        return ({"app": apps[0].pk} if len(apps) == 1 else {}) | initial

    # --- saving -----------------------------------------------------------------------------------
    def save_model(self, request: HttpRequest, obj: Webhook, form: Any, change: bool) -> None:
        if change:
            saved = change_webhook(obj, form.given) if form.given else obj
        else:
            app: App = form.cleaned_data["app"]
            if not scope_of(request).is_staff and not scope_of(request).allows(
                app.pk, Membership.EDITOR
            ):
                raise PermissionDenied
            saved, request.issued_secret = create_webhook(app=app, given=form.given)
        obj.__dict__.update(saved.__dict__)

    def response_add(self, request: HttpRequest, obj: Webhook, *args: Any, **kwargs: Any) -> Any:
        return self._show_secret(request, obj, request.issued_secret)

    def _show_secret(self, request: HttpRequest, webhook: Webhook, secret: str) -> HttpResponse:
        return show_secret(
            self,
            request,
            title="The webhook's secret",
            heading=f"Signs the calls to {webhook.url}",
            secret=secret,
            back=reverse("admin:notifications_webhook_change", args=[webhook.pk]),
        )

    def delete_model(self, request: HttpRequest, obj: Webhook) -> None:
        delete_webhook(obj, now=timezone.now())

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """It is hidden, and its log stays: nothing goes with it."""
        return [str(one) for one in objs], {}, set(), []

    def get_actions(self, request: HttpRequest) -> Any:
        found = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    # --- actions ----------------------------------------------------------------------------------
    @admin.action(description="Switch on", permissions=["switch"])
    def switch_on(self, request: HttpRequest, webhooks: Any) -> None:
        self._switch(request, webhooks, active=True)

    @admin.action(description="Switch off", permissions=["switch"])
    def switch_off(self, request: HttpRequest, webhooks: Any) -> None:
        self._switch(request, webhooks, active=False)

    def _switch(self, request: HttpRequest, webhooks: Any, *, active: bool) -> None:
        for webhook in webhooks:
            if not webhook.deleted_at and not self.has_change_permission(request, webhook):
                messages.error(request, f"{webhook}: you may look at it only.")
                continue
            try:
                change_webhook(webhook, {"active": active})
                self.message_user(request, f"{webhook} is {'on' if active else 'off'}.")
            except NotFound:
                self.message_user(request, f"{webhook} is deleted.", "ERROR")

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("<path:object_id>/test/", wrap(self.test), name="notifications_webhook_test"),
            path(
                "<path:object_id>/rotate/", wrap(self.rotate), name="notifications_webhook_rotate"
            ),
        ]
        return own + super().get_urls()

    def test(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Call it, to try it out; a POST."""
        return _test(request, self, object_id)

    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks; a POST gives it a fresh secret, shown once."""
        webhook = find_to_change(self, request, object_id)
        if request.method == "POST":
            _, secret = rotate_secret(webhook, now=timezone.now())
            return self._show_secret(request, webhook, secret)
        return ask_first(
            self,
            request,
            webhook,
            title="Give it a new secret?",
            sentence="The new one is shown once. For a day the calls are signed with both, so"
            " that the receiver can be changed meanwhile.",
            button="Make a new secret",
            back=reverse("admin:notifications_webhook_change", args=[webhook.pk]),
        )

    # --- its page ---------------------------------------------------------------------------------
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        own: dict[str, Any] = {
            "graphs": {
                name: [state for state in EVENTS if state in {*graph.steps.values(), RESCHEDULED}]
                for name, graph in GRAPHS.items()
            }
        }
        webhook = self.get_object(request, object_id) if object_id else None
        if webhook:
            own |= {
                "log": self._latest(webhook),
                "counts": self._counts(webhook),
                "counted": COUNTED,
                "may_call": self.has_change_permission(request, webhook),
            }
        return super().changeform_view(request, object_id, form_url, own | (extra_context or {}))

    def _latest(self, webhook: Webhook) -> list[tuple[Delivery, str]]:
        rows = Delivery.objects.filter(webhook=webhook).defer("body", "content").order_by("-id")
        return [(one, DELIVERY_COLOURS[one.state]) for one in rows[:LATEST]]

    def _counts(self, webhook: Webhook) -> list[tuple[str, int]]:
        """Of its latest deliveries: all would be too many to count."""
        rows = Delivery.objects.filter(webhook=webhook).order_by("-id")
        return Counter(rows.values_list("state", flat=True)[:COUNTED]).most_common()


@require_POST
def _test(request: HttpRequest, page: WebhookAdmin, object_id: str) -> HttpResponse:
    webhook = find_to_change(page, request, object_id)
    delivery = send_test(webhook, now=timezone.now())
    words = "A test call is on its way." if webhook.active else "It is off: the call is skipped."
    messages.success(request, f"{words} Its page shows how it goes.")
    return HttpResponseRedirect(reverse("admin:notifications_delivery_change", args=[delivery.pk]))
