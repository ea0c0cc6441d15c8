#!/bin/sh
# Copies the database into a new, empty one, of a newer PostgreSQL: the way to a new major version.
#   sh upgrade_postgresql.sh OLD_URL NEW_URL FOLDER
# Stop web, workers and beat first: the script refuses to copy a database that somebody uses. It makes a
# dump in FOLDER, restores it and compares the rows of each table. The old database stays as it is.
# Passwords may be in PGPASSWORD_FILE or ~/.pgpass.
set -eu
old=$1 new=$2 folder=$3
here=$(dirname -- "$0")
if [ -n "${PGPASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat -- "$PGPASSWORD_FILE")
    export PGPASSWORD
fi

ask() { psql "$1" --no-psqlrc --tuples-only --no-align --command "$2"; }
# Not the table in which backup.sh stores the time of the dump.
count_rows() {
    ask "$1" "SELECT relname || ' ' || (xpath('/row/c/text()', query_to_xml(
        format('SELECT count(*) AS c FROM %I.%I', schemaname, relname), false, true, '')))[1]
        FROM pg_stat_user_tables WHERE schemaname = 'public' AND relname <> 'notifications_taskrun' ORDER BY 1"
}

from=$(ask "$old" "SHOW server_version_num") to=$(ask "$new" "SHOW server_version_num")
if [ "$to" -lt "$from" ]; then
    echo "The new server ($to) is older than the old one ($from)." >&2
    exit 1
fi
users=$(ask "$old" "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()")
if [ "$users" != 0 ]; then
    echo "$users connections use the old database: stop web, workers and beat." >&2
    exit 1
fi

dump=$(DATABASE_URL=$old BACKUP_KEEP_DAYS=36500 sh "$here/backup.sh" "$folder")
DATABASE_URL=$new sh "$here/restore.sh" "$dump"
count_rows "$old" > "$dump.old" && count_rows "$new" > "$dump.new"
if ! diff -- "$dump.old" "$dump.new"; then
    echo "The rows differ: did somebody write meanwhile? Keep the old database." >&2
    exit 1
fi
echo "Equal tables: $(wc -l < "$dump.new"). Point DATABASE_URL to the new server, run manage.py doctor."
