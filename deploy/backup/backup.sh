#!/bin/sh
# Writes a backup of the database: sh backup.sh FOLDER
# The server is named by libpq's variables (PGHOST, PGUSER, PGDATABASE, ...) or by DATABASE_URL; the
# password can be in the file PGPASSWORD_FILE. Backups older than BACKUP_KEEP_DAYS (14) are deleted.
set -eu
umask 077
folder=$1
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

find "$folder" -name 'scheduling-*.dump' -mtime +"${BACKUP_KEEP_DAYS:-14}" -delete
echo "$file"
