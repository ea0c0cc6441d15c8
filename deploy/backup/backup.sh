#!/bin/sh
# Writes a backup of the database: sh backup.sh FOLDER
# The server is named by libpq's variables (PGHOST, PGUSER, PGDATABASE, ...) or by DATABASE_URL; this
# URL can be in the file DATABASE_URL_FILE, the password in the file PGPASSWORD_FILE. Backups older
# than BACKUP_KEEP_DAYS (14) are deleted.
set -eu
umask 077
folder=$1
if [ -n "${DATABASE_URL_FILE:-}" ]; then
    DATABASE_URL=$(cat -- "$DATABASE_URL_FILE")
fi
if [ -n "${PGPASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat -- "$PGPASSWORD_FILE")
    export PGPASSWORD
fi

file=$folder/scheduling-$(date -u +%Y%m%dT%H%M%SZ).dump
trap 'rm -f -- "$file.part"' EXIT
pg_dump ${DATABASE_URL:+--dbname="$DATABASE_URL"} --format=custom --no-owner --no-privileges --file="$file.part"
# A file that pg_restore can't read is no backup.
pg_restore --list "$file.part" > /dev/null
mv -- "$file.part" "$file"
# For /metrics. A standby, and a database without this table, can't store it.
psql ${DATABASE_URL:+"$DATABASE_URL"} --no-psqlrc --quiet --command \
    "INSERT INTO notifications_taskrun (task, succeeded_at) VALUES ('backup', now())
    ON CONFLICT (task) DO UPDATE SET succeeded_at = now()" ||
    echo "The time of this backup is not stored: the alert BackupOld will not know of it." >&2

find "$folder" -name 'scheduling-*.dump' -mtime +"${BACKUP_KEEP_DAYS:-14}" -delete
echo "$file"
