import os

from django.core.wsgi import get_wsgi_application
from django.urls import resolve

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduling.settings")

application = get_wsgi_application()

# Load the views now, not at the first request: workers that gunicorn forks share their memory.
resolve("/healthz")
