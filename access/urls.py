from django.urls import path

from access.views import credentials, members, resource_password_reset

urlpatterns = [
    path("auth", credentials.AuthView.as_view()),
    path("credentials", credentials.CredentialsView.as_view()),
    path("credentials/<uuid:credential_id>", credentials.CredentialView.as_view()),
    path("apps/<str:slug>/members", members.MembersView.as_view()),
    path("apps/<str:slug>/members/<uuid:member_id>", members.MemberView.as_view()),
    path("resources/resetpassword", resource_password_reset.RequestPasswordResetView.as_view()),
    path("users/resetpassword", resource_password_reset.RequestPasswordResetView.as_view()),
    # Any text: a link that was damaged in transit also gets a page.
    path(
        "resources/<str:resource_id>/password", resource_password_reset.PasswordPageView.as_view()
    ),
]
