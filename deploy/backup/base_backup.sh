#!/bin/sh
# Copies the whole database server, from which restore_to_time.sh goes on with the archived log:
#   sh base_backup.sh FOLDER ARCHIVE
# The server is named as for backup.sh; the role needs REPLICATION. Once a week is enough. Copies older
# than BASE_BACKUP_KEEP_DAYS (30) are deleted, with the segments in ARCHIVE that only they need.
set -eu
umask 077
folder=$1 archive=$2
if [ -n "${DATABASE_URL_FILE:-}" ]; then
    DATABASE_URL=$(cat -- "$DATABASE_URL_FILE")
fi
if [ -n "${PGPASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat -- "$PGPASSWORD_FILE")
    export PGPASSWORD
fi

copy=$folder/base-$(date -u +%Y%m%dT%H%M%SZ)
trap 'rm -rf -- "$copy.part"' EXIT
pg_basebackup ${DATABASE_URL:+--dbname="$DATABASE_URL"} --pgdata="$copy.part" --checkpoint=fast
# Every file has the checksum of the manifest.
pg_verifybackup --quiet "$copy.part"
mv -- "$copy.part" "$copy"
# For /metrics.
psql ${DATABASE_URL:+"$DATABASE_URL"} --no-psqlrc --quiet --command \
    "INSERT INTO notifications_taskrun (task, succeeded_at) VALUES ('base_backup', now())
    ON CONFLICT (task) DO UPDATE SET succeeded_at = now()" ||
    echo "The time of this copy is not stored." >&2

# By their names, because a copy has the times of the server's files.
oldest=$(date -u -d "-${BASE_BACKUP_KEEP_DAYS:-30} days" +base-%Y%m%dT%H%M%SZ)
for old in "$folder"/base-*Z; do
    if expr "$(basename -- "$old")" '<' "$oldest" > /dev/null; then
        rm -rf -- "$old"
    fi
done
first=$(find "$folder" -maxdepth 1 -name 'base-*Z' | sort | head -n 1)
needed=$(sed -n 's/^START WAL LOCATION: .* (file \([0-9A-F]*\))$/\1/p' "$first/backup_label")
pg_archivecleanup -x .gz "$archive" "$needed"
echo "$copy"
