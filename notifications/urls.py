from django.urls import include, path

from notifications import urls_templates
from notifications.views import deliveries, webhooks

urlpatterns = [
    path("webhooks", webhooks.WebhooksView.as_view()),
    path("webhooks/<uuid:webhook_id>", webhooks.WebhookView.as_view()),
    path("webhooks/<uuid:webhook_id>/rotate", webhooks.RotateView.as_view()),
    path("webhooks/<uuid:webhook_id>/test", webhooks.TestView.as_view()),
    path("webhooks/<uuid:webhook_id>/deliveries", deliveries.WebhookDeliveriesView.as_view()),
    path("deliveries", deliveries.DeliveriesView.as_view()),
    path("deliveries/<uuid:delivery_id>", deliveries.DeliveryView.as_view()),
    path("deliveries/<uuid:delivery_id>/redeliver", deliveries.RedeliverView.as_view()),
    path("", include(urls_templates)),
]
