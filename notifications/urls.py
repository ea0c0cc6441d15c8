from django.urls import path

from notifications.views import deliveries, passwords, templates, webhooks

urlpatterns = [
    path("resources/resetpassword", passwords.ResetPasswordView.as_view()),
    path("users/resetpassword", passwords.ResetPasswordView.as_view()),
    # Any text: a link that was mangled on its way is answered by a page too.
    path("resources/<str:resource_id>/password", passwords.PasswordPageView.as_view()),
    path("webhooks", webhooks.WebhooksView.as_view()),
    path("webhooks/<uuid:webhook_id>", webhooks.WebhookView.as_view()),
    path("webhooks/<uuid:webhook_id>/rotate", webhooks.RotateView.as_view()),
    path("webhooks/<uuid:webhook_id>/test", webhooks.TestView.as_view()),
    path("webhooks/<uuid:webhook_id>/deliveries", deliveries.WebhookDeliveriesView.as_view()),
    path("deliveries", deliveries.DeliveriesView.as_view()),
    path("deliveries/<uuid:delivery_id>", deliveries.DeliveryView.as_view()),
    path("deliveries/<uuid:delivery_id>/redeliver", deliveries.RedeliverView.as_view()),
    path("templates", templates.TemplatesView.as_view()),
    path("templates/<str:template_slug>", templates.TemplateView.as_view()),
    path("templates/<str:template_slug>/preview", templates.PreviewView.as_view()),
]
