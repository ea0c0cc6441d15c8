#!/bin/sh
# Pins each image to the digest that its tag has at present: sh scripts/pin_images.sh
# The digest is that of the index for all platforms. Needs docker with buildx.
set -eu
cd -- "$(dirname -- "$0")/.."
files="Dockerfile docker-compose.yml deploy/helm/scheduling/values.yaml"
for image in $(grep -hoE '[a-z0-9./-]+:[A-Za-z0-9._-]+@sha256:[0-9a-f]{64}' $files | sort -u); do
    tag=${image%@*}
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$tag")
    sed -i "s|$image|$tag@$digest|" $files
    echo "$tag@$digest"
done
