"""The lists that are registered with the back office."""

from django.apps import apps
from django.contrib.admin import AdminSite, ModelAdmin
from django.db.models import Model


def page_of(site: AdminSite, model: type[Model] | None) -> ModelAdmin | None:
    """Return the list of a model; None if it has none."""
    return site.get_model_admin(model) if model and site.is_registered(model) else None


def registered_pages(site: AdminSite) -> list[ModelAdmin]:
    return [page for model in apps.get_models() if (page := page_of(site, model))]
