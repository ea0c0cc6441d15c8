from django.urls import path

from agents.views import ProtectedResourceView, ToolsView

urlpatterns = [
    path("mcp", ToolsView.as_view(), name="mcp"),
    path(".well-known/oauth-protected-resource/mcp", ProtectedResourceView.as_view()),
]
