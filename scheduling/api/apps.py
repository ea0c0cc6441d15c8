from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "scheduling.api"
    label = "api"
