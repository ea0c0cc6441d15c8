from django.urls import path

from common.api.router import ApiRouter
from notifications.changes import views as change_views
from notifications.mail import template_views, unsubscribe_page
from notifications.outbox import views as delivery_views
from notifications.webhooks import views as webhook_views

router = ApiRouter()
router.register("changes", change_views.ChangeViewSet, "changes")
router.register("webhooks", webhook_views.WebhookViewSet, "webhooks")
router.register(
    "webhooks/<uuid:webhook_id>/deliveries",
    delivery_views.WebhookDeliveryViewSet,
    "webhook-deliveries",
)
router.register("deliveries", delivery_views.DeliveryViewSet, "deliveries")
router.register("templates", template_views.TemplateViewSet, "templates")

urlpatterns = [
    # Any text: a malformed link gets an HTML error page too.
    path("customers/<str:customer_id>/unsubscribe", unsubscribe_page.UnsubscribeView.as_view()),
    *router.urls,
]
