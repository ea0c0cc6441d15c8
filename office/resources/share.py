"""What leads customers to a project's booking page: its link, a QR code, texts to copy."""

import uuid
from collections.abc import Callable
from functools import wraps
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext, override
from django.views.decorators.http import require_safe
from qrcode.constants import ERROR_CORRECT_M
from qrcode.image.svg import SvgPathFillImage
from qrcode.main import QRCode

from apps_config.models import Membership
from availability.models import Project
from booking_pages.views.embed_snippets import snippets_of
from bookings.pages.branding import branding_of
from bookings.pages.formatting import language_of, to_one_line
from office.base.model_admin_pages import find_row
from office.base.permissions import RequiredPermission, require, show_page, visible_projects

SHARE = RequiredPermission(Membership.VIEWER, "availability.view_project")
QUIET_ZONE = 4  # modules around the code, as ISO/IEC 18004 demands

ProjectView = Callable[[HttpRequest, Project], HttpResponse]


def page_url(project: Project) -> str:
    """Return the address of the project's booking page."""
    return f"{settings.PUBLIC_URL}/book/{quote(project.slug)}"


def of_project(view: ProjectView) -> Callable[[HttpRequest, uuid.UUID], HttpResponse]:
    """Return the view with the project whose id is in the address. Raises Http404."""

    @require_safe
    @wraps(view)
    def found(request: HttpRequest, project_id: uuid.UUID) -> HttpResponse:
        rows = visible_projects(request).select_related("app")
        project = find_row(rows, str(project_id))
        require(request, project.app_id, SHARE)
        return view(request, project)

    return found


@of_project
def show_share(request: HttpRequest, project: Project) -> HttpResponse:
    return show_page(
        request,
        "office/share.html",
        title=gettext("Share: %(name)s") % {"name": project.name},
        project=project,
        address=page_url(project),
        links={
            name: reverse(f"admin:project_{name}", args=[project.pk]) for name in ("qr", "poster")
        },
        back=reverse("admin:availability_project_change", args=[project.pk]),
        snippets=snippets_of(project),
        signature=signature_of(project),
    )


@of_project
def show_qr(request: HttpRequest, project: Project) -> HttpResponse:
    """The QR code of the page's address, as a file that any size can be printed from."""
    response = HttpResponse(qr_code(page_url(project)), content_type="image/svg+xml")
    if "download" in request.GET:
        response["Content-Disposition"] = f'attachment; filename="{quote(project.slug)}-qr.svg"'
    return response


@of_project
def show_poster(request: HttpRequest, project: Project) -> HttpResponse:
    """A page to print or to save as PDF, in the language of the customers."""
    app = project.app
    with override(language_of(app, project.settings.get("language"))):
        return render(
            request,
            "office/poster.html",
            {
                "name": to_one_line(project.name),
                "app_name": to_one_line(app.name),
                "logo": branding_of(app).logo,
                "address": page_url(project),
                "qr": reverse("admin:project_qr", args=[project.pk]),
            },
        )


def qr_code(text: str) -> bytes:
    """Return the QR code of a text as SVG, with black modules on a white ground."""
    code = QRCode(error_correction=ERROR_CORRECT_M, border=QUIET_ZONE)
    code.add_data(text)
    return bytes(code.make_image(image_factory=SvgPathFillImage).to_string())


def signature_of(project: Project) -> str:
    """Return the HTML of a line for the end of e-mails."""
    words = gettext("Book an appointment")
    return format_html(
        '<p><a href="{}">{}: {}</a></p>', page_url(project), words, to_one_line(project.name)
    )
