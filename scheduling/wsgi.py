import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application
from django.urls import resolve

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduling.settings")

handle_request = get_wsgi_application()

from apps_config.home_check import refuse_other_home  # noqa: E402  # needs the settings
from common.api.json import CHUNKED_LENGTH  # noqa: E402


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Django's application; it reads a chunked body up to the limit of the service.

    Django takes a body without a Content-Length for empty. gunicorn marks the end of such a body.
    """
    if "HTTP_TRANSFER_ENCODING" in environ and environ.get("wsgi.input_terminated"):
        environ["CONTENT_LENGTH"] = str(CHUNKED_LENGTH)
    return handle_request(environ, start_response)


refuse_other_home()
# Load the views now, not at the first request: workers that gunicorn forks share their memory.
resolve("/healthz")
