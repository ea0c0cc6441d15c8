"""Cost of checking one key: python -m benchmarks.authentication, in the service's environment."""

import json
import time
from base64 import b64encode
from datetime import UTC, datetime
from statistics import median

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from apps_config.authentication import authenticate  # noqa: E402
from benchmarks.fill import make_app  # noqa: E402


def main() -> None:
    filled, _ = make_app("keys", 0)
    header = "Basic " + b64encode(f":{filled['key']}".encode()).decode()
    now = datetime.now(UTC)
    for _ in range(20):
        authenticate(header, None, now=now)
    with CaptureQueriesContext(connection) as queries:
        authenticate(header, None, now=now)
    times = []
    for _ in range(500):
        start = time.perf_counter()
        authenticate(header, None, now=now)
        times.append(time.perf_counter() - start)
    print(json.dumps({"queries": len(queries), "seconds": median(times)}))


if __name__ == "__main__":
    main()
