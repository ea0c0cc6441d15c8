"""What a booking page is put together from (api.md section 4): it stands in public.

Left out is whatever the page does not show: policies, meta, and event notifications, whose calls
go to addresses that are secrets.
"""

from typing import Any

from availability.models import Project
from scheduling.api.merging import merge_keys

# Who books gives these two: a project says how they are asked for, and adds its own.
CUSTOMER_FIELDS = {
    "name": {"title": "Name", "required": True},
    "email": {"title": "E-mail", "format": "email", "required": True},
}
# `%s` stands for the customer's address, as pages of this family write it.
UI = {
    "localization": {
        "submit_button": "Book",
        "success_message": "Thank you. A message to %s is on its way.",
    }
}
BOOKING = {"graph": "instant"}


def page_record(project: Project) -> dict[str, Any]:
    """A project, read by `with_project_rows`, as a page's configuration.

    Without empty values: pages lay it over defaults of their own, which those would hide.
    """
    return without_empty(
        {
            "id": str(project.id),
            "slug": project.slug,
            "name": project.name,
            "resources": [str(resource.id) for resource in project.shown_resources],
            "availability": project.availability,
            "availability_constraints": [rule.as_json() for rule in project.constraints.all()],
            "booking": merge_keys(BOOKING, project.booking),
            "customer_fields": merge_keys(CUSTOMER_FIELDS, project.customer_fields),
            "ui": merge_keys(UI, project.ui),
            "reservation_time": project.reservation_time,
        }
    )


def without_empty(value: Any) -> Any:
    """Objects without the keys that hold nothing, at any depth; false and 0 are something."""
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty(one) for key, one in value.items()}
    return {key: one for key, one in kept.items() if one not in (None, "", [], {})}
