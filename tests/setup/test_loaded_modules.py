"""A worker loads neither pages nor the API's documentation, and redis only if Redis is used: each
takes memory in all processes of the service.
"""

import importlib.util
import os
import subprocess
import sys

from tests.services import ROOT

NOT_FOR_WORKERS = (
    *("django.test", "drf_spectacular.openapi", "office.admin", "rest_framework.views"),
    *("opentelemetry", "redis"),
)
LOAD = f"""
import sys
import django
from scheduling import celery_app
django.setup()
celery_app.loader.import_default_modules()
print("notifications.tasks" in sys.modules, *[n for n in {NOT_FOR_WORKERS} if n in sys.modules])
"""


def test_worker_loads_only_what_it_uses() -> None:
    env = {
        "DJANGO_SETTINGS_MODULE": "scheduling.settings",
        "CELERY_SKIP_CHECKS": "true",  # of `celery --skip-checks worker`
        "REDIS_URL": "",
    }
    command = [sys.executable, "-c", LOAD]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | env, check=True, stdout=subprocess.PIPE, text=True
    )

    assert done.stdout.split() == ["True"]
    assert all(importlib.util.find_spec(name) for name in NOT_FOR_WORKERS)  # such modules exist
