#!/bin/sh
# Makes the files of secrets that docker-compose.yml reads, in ./secrets. Existing files stay.
# Fill in email_url, and the optional files metrics_token, sentry_dsn, oidc_client_secret,
# google_client_secret, microsoft_client_secret, encryption_keys and secret_key_fallbacks, yourself.
set -eu
folder=${1:-secrets}
umask 077
mkdir -p -- "$folder"

random_key() { head -c 48 /dev/urandom | base64 | tr -d '\n=' | tr '+/' '-_'; }

for name in secret_key postgres_password; do
    [ -s "$folder/$name" ] || random_key > "$folder/$name"
done
[ -s "$folder/redis_url" ] || echo "redis://:$(random_key)@redis:6379/0" > "$folder/redis_url"
for name in secret_key_fallbacks encryption_keys email_url metrics_token sentry_dsn oidc_client_secret \
    google_client_secret microsoft_client_secret; do
    [ -e "$folder/$name" ] || : > "$folder/$name"
done
# The containers' users read the files; other users of this machine can't enter the folder.
chmod 0444 "$folder"/*
chmod 0700 "$folder"
