"""The page at `/`: what runs here, with the demo's booking page inside. No secrets; little in
production.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from availability.models import Project
from bookings.management.commands.seed_demo import APP_SLUG
from bookings.pages.base import SOURCES, content_security_policy
from common.documentation_site import has_documentation

# The demo's booking page is shown in a frame, by the script for other sites.
SOURCES_WITH_FRAME = {**SOURCES, "script-src": "'self'", "frame-src": "'self'"}


@require_safe
def show_home(request: HttpRequest) -> HttpResponse:
    is_production = settings.HTTPS
    demo_slug = "" if is_production else find_demo_slug()
    context = {
        "heading": "Scheduling and booking",
        "language": "en",
        "direction": "ltr",
        "is_production": is_production,
        "has_documentation": has_documentation(),
        "demo_app": APP_SLUG,
        "demo_slug": demo_slug,
    }
    response = render(request, "booking_pages/home.html", context)
    response["Content-Security-Policy"] = content_security_policy(
        SOURCES_WITH_FRAME if demo_slug else SOURCES
    )
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def find_demo_slug() -> str:
    """Return the slug of the demo's booking page; "" without one."""
    rows = Project.objects.filter(app__slug=APP_SLUG, app__archived_at=None, deleted_at=None)
    project = rows.select_related("app").order_by("created_at", "id").first()
    return project.slug if project and project.app.publishes(project.settings) else ""
