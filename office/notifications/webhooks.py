"""Webhooks in the back office: forms, actions and the latest deliveries."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from apps_config.models import App
from bookings.graphs import GRAPHS
from common.errors import NotFound
from notifications.models import Delivery, Webhook
from notifications.planning import RESCHEDULED, WEBHOOK_KINDS
from notifications.webhooks.serializers import EVENTS, WebhookSerializer
from notifications.webhooks.services import (
    change_webhook,
    create_webhook,
    delete_webhook,
    rotate_secret,
    send_test,
)
from office.base.api_forms import ChangesForm
from office.base.labels import (
    DELIVERY_COLOURS,
    DELIVERY_STATE_WORDS,
    GRAPH_WORDS,
    LabelledWords,
    delivery_words,
    kind_words,
    state_words,
)
from office.base.list_filters import AppFilter, ChoiceFilter, DeletedFilter
from office.base.message_translations import translate_message
from office.base.model_admin import ServiceBackedAdmin
from office.base.model_admin_pages import ExtraPage, keep_secret, kept_secret

LATEST = 20
COUNTED = 1000
FIELDS = (
    *("url", "method", "format", "graph", "states", "kinds"),
    *("expected_response_code", "active", "description"),
)


def event_choices() -> list[tuple[str, str]]:
    return [(name, state_words(name)) for name in EVENTS]


def kind_choices() -> list[tuple[str, str]]:
    return [(name, kind_words(name)) for name in WEBHOOK_KINDS]


class WebhookForm(ChangesForm):
    sent = FIELDS

    url = forms.CharField(
        label=_("URL"),
        help_text=_("A public http or https URL. Every call is signed."),
        widget=UnfoldAdminTextInputWidget,
    )
    graph = forms.ChoiceField(
        label=_("Bookings"),
        required=False,
        help_text=_("Only bookings of this kind."),
        choices=[("", _("All bookings")), *((name, GRAPH_WORDS[name]) for name in GRAPHS)],
        widget=UnfoldAdminSelectWidget,
    )
    states = forms.MultipleChoiceField(
        label=_("States"),
        required=False,
        help_text=_("Called when a booking enters one of these states. None selected: all states."),
        choices=event_choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )
    kinds = forms.MultipleChoiceField(
        label=_("Event types"),
        required=False,
        help_text=_(
            "Only calls for these changes. None selected: all changes of bookings except “Changed”."
        ),
        choices=kind_choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    format = forms.ChoiceField(
        label=_("Format"),
        required=False,
        help_text=_("The body of the calls. Some receivers expect a type and a time in it."),
        choices=[
            ("", _("The booking, and its change")),
            (Webhook.STANDARD, _("Standard Webhooks: type, timestamp, data")),
            (Webhook.THIN, _("Kind and id only")),
        ],
        widget=UnfoldAdminSelectWidget,
    )

    class Meta:
        model = Webhook
        fields = ("app", *FIELDS)
        labels = {"active": _("Enabled"), "expected_response_code": _("Expected status code")}
        help_texts = {
            "expected_response_code": _("The only status that counts as success. Empty: any 2xx."),
            "active": _("Enabling the webhook resets its failures."),
            "description": _("The purpose of the webhook."),
        }

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = self.cleaned_data
        body = self.body()
        if "graph" in body:
            body["graph"] = body["graph"] or None
        if "format" in body:
            body["format"] = body["format"] or None
        self.check(WebhookSerializer(data=body, partial=not self.is_new))
        return given


class WebhookGraphFilter(ChoiceFilter):
    title = _("bookings")
    parameter_name = "graph"
    options = [(graph, GRAPH_WORDS[graph]) for graph in GRAPHS]


@admin.register(Webhook)
class WebhookAdmin(ServiceBackedAdmin[Webhook]):
    app_paths = ("app",)
    autocomplete_fields = chosen_fields = ("app",)
    deletion_effect = _(
        "Nothing is sent to this address any more, and scheduled calls are skipped. The log stays."
        " The back office can't undo this."
    )
    fixed_fields = ("app",)
    form = WebhookForm
    list_display = ("url", "app", "shown_graph", "shown_state", "failures", "created_at")
    list_filter = (DeletedFilter, "active", WebhookGraphFilter, ("app", AppFilter))
    list_select_related = ("app",)
    search_fields = ("id", "url", "description", "app__slug")
    ordering = ("-id",)
    sortable_by = ("url", "created_at")
    readonly_fields = ("id", "shown_state", "failures", "failing_since", "created_at", "updated_at")
    fieldsets = (
        (None, {"fields": ("app", "url", "method", "format", "expected_response_code", "active")}),
        (_("Events"), {"fields": ("graph", "states", "kinds")}),
        (_("Details"), {"fields": ("description", *readonly_fields)}),
    )
    add_fieldsets = (
        (
            None,
            {"fields": ("app", "url", "method", "format", "expected_response_code", "description")},
        ),
        (_("Events"), {"fields": ("graph", "states", "kinds")}),
    )
    change_form_outer_before_template = "office/webhook_graphs.html"
    change_form_outer_after_template = "office/webhook_log.html"
    actions = ("switch_on", "switch_off")

    class Media:
        js = ("office/webhook.js",)

    # --- List -------------------------------------------------------------------------------------
    @display(description=_("bookings"))
    def shown_graph(self, webhook: Webhook) -> str:
        states = ", ".join(state_words(state) for state in webhook.states)
        graph = GRAPH_WORDS.get(webhook.graph or "", webhook.graph or gettext("all bookings"))
        return f"{graph}{f': {states}' if states else ''}"

    @display(description=_("states"))
    def shown_states(self, webhook: Webhook) -> str:
        return ", ".join(map(state_words, webhook.states)) or gettext("all")

    @display(description=_("event types"))
    def shown_kinds(self, webhook: Webhook) -> str:
        return ", ".join(map(kind_words, webhook.kinds)) or gettext("all except “Changed”")

    @display(
        description=_("state"),
        label={"on": "success", "off": "danger", "deleted": "warning"},
    )
    def shown_state(self, webhook: Webhook) -> LabelledWords:
        if webhook.deleted_at:
            return LabelledWords("deleted", gettext("deleted"))
        if webhook.active:
            return LabelledWords("on", gettext("enabled"))
        if not webhook.disabled_reason:
            return LabelledWords("off", gettext("disabled"))
        reason = translate_message(webhook.disabled_reason)
        return LabelledWords("off", gettext("disabled: %(reason)s") % {"reason": reason})

    # --- Permissions ------------------------------------------------------------------------------
    def _may(self, request: HttpRequest, what: str, obj: Model | None) -> bool:
        """Deleted webhooks can't be changed."""
        return not getattr(obj, "deleted_at", None) and super()._may(request, what, obj)

    def has_switch_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    # --- Saving -----------------------------------------------------------------------------------
    def save_row(
        self, request: HttpRequest, row: Webhook, form: WebhookForm, *, is_new: bool
    ) -> Webhook:
        if not is_new:
            return change_webhook(row, form.given) if form.given else row
        app: App = form.cleaned_data["app"]
        saved, secret = create_webhook(app=app, given=form.given)
        keep_secret(request, secret)
        return saved

    def response_add(
        self, request: HttpRequest, obj: Webhook, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._show_secret(request, obj, kept_secret(request))

    def _show_secret(self, request: HttpRequest, webhook: Webhook, secret: str) -> HttpResponse:
        return self.show_secret(
            request,
            title=gettext("The webhook's secret"),
            heading=gettext("Signs the calls to %(url)s") % {"url": webhook.url},
            secret=secret,
            back=self.url_of(webhook),
        )

    def delete_row(self, row: Webhook) -> None:
        delete_webhook(row, now=timezone.now())

    # --- Actions ----------------------------------------------------------------------------------
    @admin.action(description=_("Enable"), permissions=["switch"])
    def switch_on(self, request: HttpRequest, webhooks: QuerySet[Webhook]) -> None:
        self._set_active(request, webhooks, active=True)

    @admin.action(description=_("Disable"), permissions=["switch"])
    def switch_off(self, request: HttpRequest, webhooks: QuerySet[Webhook]) -> None:
        self._set_active(request, webhooks, active=False)

    def _set_active(
        self, request: HttpRequest, webhooks: QuerySet[Webhook], *, active: bool
    ) -> None:
        for webhook in webhooks:
            if not webhook.deleted_at and not self.has_change_permission(request, webhook):
                sentence = gettext("%(name)s: you may only view it.")
                messages.error(request, sentence % {"name": webhook})
                continue
            try:
                change_webhook(webhook, {"active": active})
                enabled, disabled = (
                    gettext("%(name)s is enabled."),
                    gettext("%(name)s is disabled."),
                )
                self.message_user(request, (enabled if active else disabled) % {"name": webhook})
            except NotFound:
                sentence = gettext("%(name)s is deleted.")
                self.message_user(request, sentence % {"name": webhook}, "ERROR")

    def extra_pages(self) -> Iterable[ExtraPage]:
        return (
            ExtraPage("<path:object_id>/test/", self.test, "test", "change"),
            ExtraPage("<path:object_id>/rotate/", self.rotate, "rotate", "change"),
        )

    @method_decorator(require_POST)
    def test(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send a test call."""
        webhook = self.find_to_change(request, object_id)
        delivery = send_test(webhook, now=timezone.now())
        words = (
            gettext("A test call is scheduled. This page shows the result.")
            if webhook.active
            else gettext(
                "The webhook is disabled: the call is skipped. This page shows the result."
            )
        )
        messages.success(request, words)
        return redirect("admin:notifications_delivery_change", delivery.pk)

    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; a POST rotates the secret and shows the new one once."""
        webhook = self.find_to_change(request, object_id)
        if request.method == "POST":
            _, secret = rotate_secret(webhook, now=timezone.now())
            return self._show_secret(request, webhook, secret)
        return self.ask_confirmation(
            request,
            webhook,
            button_style="primary",
            title=gettext("Create a new secret?"),
            sentence=gettext(
                "The new secret is shown once. For a day, calls are signed with both secrets:"
                " update the receiver in this time."
            ),
            button=gettext("Create the secret"),
        )

    # --- Page -------------------------------------------------------------------------------------
    def page_values(self, request: HttpRequest, object_id: str | None) -> dict[str, Any]:
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
                "counts": self._count_words(webhook),
                "counted": COUNTED,
                "may_call": self.has_change_permission(request, webhook),
            }
        return own

    def _latest(self, webhook: Webhook) -> list[dict[str, Any]]:
        rows = Delivery.objects.filter(webhook=webhook).defer("body", "content").order_by("-id")
        return [
            {
                "delivery": row,
                "words": delivery_words(row),
                "state": DELIVERY_STATE_WORDS[row.state],
                "colour": DELIVERY_COLOURS[row.state],
            }
            for row in rows[:LATEST]
        ]

    def _count_words(self, webhook: Webhook) -> str:
        """Return `3 delivered, 1 failed`, of the latest COUNTED deliveries: counting all would take
        too long.
        """
        rows = Delivery.objects.filter(webhook=webhook).order_by("-id")
        counts = Counter(rows.values_list("state", flat=True)[:COUNTED]).most_common()
        return ", ".join(f"{number} {DELIVERY_STATE_WORDS[state]}" for state, number in counts)
