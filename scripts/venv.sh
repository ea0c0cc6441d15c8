#!/bin/sh
# Prints the path of a Python whose virtual environment holds what the named requirement files list:
#   python=$(sh scripts/venv.sh requirements.txt)
# Everything else it has to say goes to standard error.
set -eu
cd -- "$(dirname -- "$0")/.."

# A candidate counts only if it runs: version managers leave shims for versions that are not installed.
for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        exec "$candidate" scripts/venv.py "$@"
    fi
done
echo "Python 3.11 or newer is needed and was not found: install it, or name it in PYTHON." >&2
exit 1
