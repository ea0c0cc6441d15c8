"""A worker loads neither pages nor the API's documentation, and redis only if Redis is used: each
takes memory in all processes of the service.
"""

import os
import subprocess
import sys

from tests.services import ROOT

PAGES = ["django.test", "drf_spectacular.openapi", "office.admin", "rest_framework.views"]
LOAD = f"""
import sys
import django
from scheduling import celery_app
django.setup()
celery_app.loader.import_default_modules()
print(*[name for name in [*{PAGES}, "redis"] if name in sys.modules])
"""
# `celery --skip-checks worker` sets it.
WORKER = {"CELERY_SKIP_CHECKS": "true"}


def loaded_modules(**variables: str) -> list[str]:
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "scheduling.settings"} | variables
    command = [sys.executable, "-c", LOAD]
    done = subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()


def test_worker_loads_only_what_it_uses() -> None:
    without_redis = loaded_modules(**WORKER, REDIS_URL="")
    with_redis = loaded_modules(**WORKER, REDIS_URL="redis://127.0.0.1:6379/0")

    assert (without_redis, with_redis) == ([], ["redis"])


def test_web_loads_all_pages() -> None:
    """The control: these are the names of the modules."""
    assert loaded_modules(REDIS_URL="") == PAGES
