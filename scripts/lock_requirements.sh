#!/bin/sh
# Pins each list of packages, and all that they need, with the hashes of their files for all platforms:
#   sh scripts/lock_requirements.sh [options of uv, such as --upgrade-package django]
# Versions that fit stay. Needs uv (.ci/uv.txt).
set -eu
cd -- "$(dirname -- "$0")/.."
for list in requirements requirements-docs requirements-dev .ci/uv; do
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
        --no-header "$list.in" --output-file "$list.txt" "$@"
done
