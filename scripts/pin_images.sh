#!/bin/sh
# Pins each image to the digest that its tag has at present: sh scripts/pin_images.sh
# The digest is that of the index for all platforms. Needs docker with buildx.
set -eu
cd -- "$(dirname -- "$0")/.."
files="Dockerfile docker-compose.yml docker-compose.monitoring.yml deploy/helm/scheduling/values.yaml"
pinned='[a-z0-9./-]+:[A-Za-z0-9._-]+@sha256:[0-9a-f]{64}'
unpinned=$(sed -n 's/^ *image: \([a-z0-9./-]*:[A-Za-z0-9._-]*\)$/\1/p' docker-compose.monitoring.yml)
for image in $(grep -hoE "$pinned" $files | sort -u) $unpinned; do
    tag=${image%@*}
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$tag")
    sed -i "s|$image|$tag@$digest|" $files
    echo "$tag@$digest"
done
