"""The collector runs rarely while the service loads and while it serves."""

import subprocess
import sys

from tests.services import ROOT

LOAD = """
import gc
import scheduling
print(gc.get_threshold())
from scheduling.garbage_collection import freeze_loaded_service
freeze_loaded_service()
print(gc.get_threshold(), gc.get_freeze_count() > 10_000)
"""


def test_threshold_of_loading_and_of_serving() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], cwd=ROOT, capture_output=True, text=True)

    assert done.stdout.splitlines() == ["(10000, 10, 10)", "(10000, 10, 10) True"], done.stderr
