"""Serve the fakes of Google and Microsoft alone, with demo accounts: for `./run --fake-providers`.

    python -m tests.external_calendars.fakes --callback http://127.0.0.1:8000/v2/calendars/callback

Everything is in memory: after a restart, the accounts are new and the grants are gone. Requests
that the real APIs do not have are printed.
"""

import argparse
import time

from tests.external_calendars.fakes.demo import DEMOS
from tests.external_calendars.fakes.server import Gateway


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: any")
    parser.add_argument("--callback", required=True, help="the redirect URI of the service")
    options = parser.parse_args()
    with Gateway(options.port) as gateway:
        for add_demo in DEMOS:
            add_demo(gateway, options.callback)
        print(f"Fake calendar providers: {gateway.url}", flush=True)
        while True:
            time.sleep(1)
            gateway.forget()
            while gateway.violations:
                print(gateway.violations.pop(0), flush=True)


if __name__ == "__main__":
    main()
