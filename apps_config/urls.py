from django.urls import path

from apps_config import views

urlpatterns = [
    path("app", views.CurrentAppView.as_view()),
    path("apps", views.AppsView.as_view()),
    path("apps/<str:slug>", views.AppBySlugView.as_view()),
]
