from django.urls import path

from notifications.mail import template_views, unsubscribe_page
from notifications.outbox import views as delivery_views
from notifications.webhooks import views as webhook_views

urlpatterns = [
    path("webhooks", webhook_views.WebhooksView.as_view()),
    path("webhooks/<uuid:webhook_id>", webhook_views.WebhookView.as_view()),
    path("webhooks/<uuid:webhook_id>/rotate", webhook_views.RotateView.as_view()),
    path("webhooks/<uuid:webhook_id>/test", webhook_views.TestDeliveryView.as_view()),
    path("webhooks/<uuid:webhook_id>/deliveries", delivery_views.WebhookDeliveriesView.as_view()),
    path("deliveries", delivery_views.DeliveriesView.as_view()),
    path("deliveries/<uuid:delivery_id>", delivery_views.DeliveryView.as_view()),
    path("deliveries/<uuid:delivery_id>/redeliver", delivery_views.RedeliverView.as_view()),
    # Any text: a malformed link gets an HTML error page too.
    path("customers/<str:customer_id>/unsubscribe", unsubscribe_page.UnsubscribeView.as_view()),
    path("templates", template_views.TemplatesView.as_view()),
    path("templates/<str:template_slug>", template_views.TemplateView.as_view()),
    path("templates/<str:template_slug>/preview", template_views.PreviewView.as_view()),
]
