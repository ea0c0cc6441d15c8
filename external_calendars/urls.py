from django.urls import path

from external_calendars.views import calendars, feeds

urlpatterns = [
    path("calendars", calendars.CreateOrConnectCalendarView.as_view()),
    path("calendars/<uuid:calendar_id>", calendars.ConnectableCalendarView.as_view()),
    path("calendars/<uuid:calendar_id>/test", calendars.TestConnectionView.as_view()),
    path("calendars/<uuid:calendar_id>/sync", calendars.SyncView.as_view()),
    path("calendars/<uuid:calendar_id>/disconnect", calendars.DisconnectView.as_view()),
    path("calendars/<uuid:calendar_id>/feed", feeds.FeedView.as_view()),
    path("calendars/<uuid:calendar_id>/feed.ics", feeds.FeedTextView.as_view()),
]
