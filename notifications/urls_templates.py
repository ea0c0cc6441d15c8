from django.urls import path

from notifications.views import templates

urlpatterns = [
    path("templates", templates.TemplatesView.as_view()),
    path("templates/<str:template_slug>", templates.TemplateView.as_view()),
    path("templates/<str:template_slug>/preview", templates.PreviewView.as_view()),
]
