from django.urls import path

from access.views import credentials, members, resource_password_reset
from common.api.router import ApiRouter

router = ApiRouter()
router.register("credentials", credentials.CredentialViewSet, "credentials")
router.register("apps/<str:slug>/members", members.MemberViewSet, "members")
for path_of_resources in ("users", "resources"):
    router.register(
        f"{path_of_resources}/resetpassword",
        resource_password_reset.PasswordResetViewSet,
        "password-resets",
    )

urlpatterns = [
    path("auth", credentials.AuthView.as_view()),
    *router.urls,
    # Any text: a link that was damaged in transit also gets a page.
    path(
        "resources/<str:resource_id>/password", resource_password_reset.PasswordPageView.as_view()
    ),
]
