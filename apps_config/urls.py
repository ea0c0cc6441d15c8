from apps_config import views
from common.api.router import ApiRouter

router = ApiRouter()
router.register("app", views.CurrentAppViewSet, "app")
router.register("apps", views.AppViewSet, "apps")
urlpatterns = router.urls
