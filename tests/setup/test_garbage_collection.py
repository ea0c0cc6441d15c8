"""The collector runs rarely while the service loads, and as usual before processes are forked."""

import subprocess
import sys

from tests.services import ROOT

LOAD = """
import gc
usual = gc.get_threshold()
import scheduling
print(gc.get_threshold())
from scheduling.garbage_collection import freeze_loaded_service
freeze_loaded_service()
print(gc.get_threshold() == usual, gc.get_freeze_count() > 10_000)
"""


def test_thresholds_return_when_the_service_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], cwd=ROOT, capture_output=True, text=True)

    assert done.stdout.splitlines() == ["(10000, 10, 10)", "True True"], done.stderr
