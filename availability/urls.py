from django.urls import URLPattern, path

from availability.views import (
    availability_queries,
    events,
    projects,
    public_project,
    resources,
    schedules,
)


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
    path("schedules", schedules.SchedulesView.as_view()),
    path("schedules/<uuid:schedule_id>", schedules.ScheduleView.as_view()),
    path("events", events.EventsView.as_view()),
    path("events/<uuid:event_id>", events.EventView.as_view()),
    path("projects", projects.ProjectsView.as_view()),
    path("projects/embed/<uuid:project_id>", public_project.EmbeddedPageView.as_view()),
    path("projects/hosted/<str:project_slug>", public_project.HostedPageView.as_view()),
    path("projects/<uuid:project_id>", projects.ProjectView.as_view()),
    path("projects/<uuid:project_id>/resources", projects.ProjectResourcesView.as_view()),
    path(
        "projects/<uuid:project_id>/resources/<uuid:resource_id>",
        projects.ProjectResourceView.as_view(),
    ),
    path("availability", availability_queries.AvailabilityView.as_view()),
    path("availability/dates", availability_queries.DatesView.as_view()),
    path("availability/count", availability_queries.CountView.as_view()),
    path("availability/explain", availability_queries.ExplainView.as_view()),
    path("unavailable/slots", availability_queries.UnavailableView.as_view()),
    path("findtime", availability_queries.FindtimeView.as_view()),
    path("findtime/bulk", availability_queries.FindtimeManyView.as_view()),
    path("findtime/team", availability_queries.FindtimeManyView.as_view()),
]
