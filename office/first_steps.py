"""The checklist of a new app on the first page: five steps that tick themselves."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from apps_config.models import App, Membership
from apps_config.services import end_first_steps
from availability.models import Project, Resource
from bookings.models import Booking
from common.documentation_site import has_documentation
from common.errors import ignore_database_outage
from office.base.lazy_text import LazyText
from office.base.permissions import RequiredPermission, has_permission, require
from office.base.scope import scope_of
from office.notifications.mail_file_viewer import mails_are_files

CHANGE = RequiredPermission(Membership.EDITOR, "apps_config.change_app")
MAX_BOOKINGS = 100  # the newest ones, among which a customer's booking is looked for


class FirstStep(NamedTuple):
    """words: what to do; hint: why, or where. link: "" if it is not done in the back office."""

    words: LazyText
    hint: LazyText
    link: str
    is_done: bool


def first_steps(request: HttpRequest, app_id: uuid.UUID | None) -> Mapping[str, Any] | None:
    """Return the values of `office/first_steps.html`. app_id: the account's app, if it is its only
    one.

    None if the steps are over, or not for this account to do. They are over for good when all are
    done, or when somebody has closed the list.
    """
    if app_id is None or not has_permission(request, app_id, CHANGE):
        return None
    app = App.objects.filter(id=app_id, first_steps_ended_at=None).first()
    if app is None:
        return None
    steps = [read(app) for read in STEPS]
    if all(step.is_done for step in steps):
        with ignore_database_outage():
            end_first_steps(app, now=timezone.now())
        return None
    return {
        "steps": steps,
        "done": sum(step.is_done for step in steps),
        "action": reverse("admin:first_steps_end", args=[app.pk]),
    }


@require_POST
def end_steps(request: HttpRequest, app_id: uuid.UUID) -> HttpResponse:
    """Close the list for good."""
    app = scope_of(request).apps().filter(pk=app_id).first()
    if app is None:
        raise Http404
    require(request, app.pk, CHANGE)
    end_first_steps(app, now=timezone.now())
    return redirect("admin:index")


def _hours(app: App) -> FirstStep:
    resources = Resource.objects.for_app(app)
    with_rules = resources.exclude(availability_constraints=[])
    return FirstStep(
        _("Set opening hours"),
        _("Add a person, a room or whatever can be booked, with its hours."),
        reverse("admin:availability_resource_" + ("changelist" if resources.exists() else "add")),
        (with_rules | resources.exclude(schedule=None)).exists(),
    )


def _service(app: App) -> FirstStep:
    return FirstStep(
        _("Add a service"),
        _("A project is what customers book: its length, its questions and its page."),
        reverse("admin:availability_project_add"),
        Project.objects.for_app(app).exists(),
    )


def _logo(app: App) -> FirstStep:
    return FirstStep(
        _("Upload your logo"),
        _("Booking pages and e-mails show it, with your colour."),
        reverse("admin:apps_config_app_change", args=[app.pk]) + "#part-branding",
        bool(app.settings.get("logo")),
    )


def _mail_server(app: App) -> FirstStep:
    return FirstStep(
        _("Set a mail server"),
        _("Until then, e-mails are files on the server. The setting is EMAIL_URL."),
        "/docs/operations/" if has_documentation() else "",
        not mails_are_files(),
    )


def _test_booking(app: App) -> FirstStep:
    project = (
        Project.objects.for_app(app).select_related("app").order_by("created_at", "id").first()
    )
    newest = Booking.objects.filter(app=app, deleted_at=None).order_by("-created_at", "-id")
    texts = newest.values_list("untrusted_texts", flat=True)[:MAX_BOOKINGS]
    return FirstStep(
        _("Book as a customer"),
        _("Make a first booking on your page, and see it arrive here."),
        f"/book/{project.slug}" if project and project.is_published else "",
        any(text is not None for text in texts),
    )


STEPS: tuple[Callable[[App], FirstStep], ...] = (
    _hours,
    _service,
    _logo,
    _mail_server,
    _test_booking,
)
