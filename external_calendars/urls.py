from django.urls import path

from common.api.router import ApiRouter
from external_calendars.views import calendars, clients, consent, feeds, notifications

router = ApiRouter()
router.register("calendars/clients", clients.ProviderClientViewSet, "calendar-clients")
router.register("calendars", calendars.ConnectableCalendarViewSet, "calendars")
router.register("calendars/<uuid:calendar_id>/feed", feeds.FeedViewSet, "feeds")

urlpatterns = [
    path("calendars/callback", consent.ConsentCallbackView.as_view()),
    path("calendars/notifications/google", notifications.GoogleNotificationView.as_view()),
    path("calendars/notifications/microsoft", notifications.MicrosoftNotificationView.as_view()),
    path("calendars/<uuid:calendar_id>/feed.ics", feeds.FeedTextView.as_view()),
    *router.urls,
]
