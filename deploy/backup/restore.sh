#!/bin/sh
# Restores a backup into an empty database: sh restore.sh FILE
# The database is named as for backup.sh. All or nothing; a database with tables is refused.
set -eu
file=$1
if [ -n "${DATABASE_URL_FILE:-}" ]; then
    DATABASE_URL=$(cat -- "$DATABASE_URL_FILE")
fi
if [ -n "${PGPASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat -- "$PGPASSWORD_FILE")
    export PGPASSWORD
fi

tables=$(psql ${DATABASE_URL:+"$DATABASE_URL"} --no-psqlrc --tuples-only --no-align --command \
    "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
if [ "$tables" != 0 ]; then
    echo "The database has $tables tables. Restore into an empty one: createdb scheduling_restored" >&2
    exit 1
fi
pg_restore --dbname="${DATABASE_URL:-${PGDATABASE:?}}" --no-owner --no-privileges --exit-on-error \
    --single-transaction "$file"
# Before web starts: transactions of the old cluster say nothing about those of this one. A backup of
# an older release has no such function.
psql ${DATABASE_URL:+"$DATABASE_URL"} --no-psqlrc --quiet --set ON_ERROR_STOP=1 --command "DO \$\$ BEGIN
    IF to_regprocedure('number_restored_changes()') IS NOT NULL THEN
        PERFORM number_restored_changes();
    END IF;
END \$\$"
psql ${DATABASE_URL:+"$DATABASE_URL"} --no-psqlrc --quiet --command "ANALYZE"
