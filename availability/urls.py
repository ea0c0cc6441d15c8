from django.urls import URLPattern, path

from availability.views import booking_page_config, events, projects, resources, slots


def resource_paths(name: str) -> list[URLPattern]:
    """The URL patterns of resources, which are also called users."""
    return [
        path(name, resources.ResourcesView.as_view()),
        path(f"{name}/<uuid:resource_id>", resources.ResourceView.as_view()),
        path(f"{name}/timezone/<str:email>", resources.ResourceZoneView.as_view()),
    ]


urlpatterns = [
    *resource_paths("resources"),
    *resource_paths("users"),
    path("events", events.EventsView.as_view()),
    path("events/<uuid:event_id>", events.EventView.as_view()),
    path("projects", projects.ProjectsView.as_view()),
    path("projects/embed/<uuid:project_id>", booking_page_config.EmbeddedPageView.as_view()),
    path("projects/hosted/<str:project_slug>", booking_page_config.HostedPageView.as_view()),
    path("projects/<uuid:project_id>", projects.ProjectView.as_view()),
    path("projects/<uuid:project_id>/resources", projects.ProjectResourcesView.as_view()),
    path(
        "projects/<uuid:project_id>/resources/<uuid:resource_id>",
        projects.ProjectResourceView.as_view(),
    ),
    path("availability", slots.AvailabilityView.as_view()),
    path("availability/dates", slots.DatesView.as_view()),
    path("availability/count", slots.CountView.as_view()),
    path("availability/explain", slots.ExplainView.as_view()),
    path("unavailable/slots", slots.UnavailableView.as_view()),
    path("findtime", slots.FindtimeView.as_view()),
    path("findtime/bulk", slots.FindtimeManyView.as_view()),
    path("findtime/team", slots.FindtimeManyView.as_view()),
]
