#!/bin/sh
# Makes a standby a cell of its own, with some of the apps: sh split.sh OLD NEW HOME OTHER APPS
#   OLD, NEW   as for promote.sh, with the service's database
#   HOME       HOME_NUMBER of OLD
#   OTHER      HOME_NUMBER of the new cell
#   APPS       a file with the slugs of the apps that move, one a line
# Stop the workers and beat of OLD before, and disable its servers in the router. Afterwards, each
# side has closed (archived) the apps of the other, for `manage.py prune_apps` to delete. Can be
# stopped and repeated.
set -eu
old=$1 new=$2 home=$3 other=$4
apps=$(cat -- "$5")
run() {
    psql "$1" --no-psqlrc --quiet --tuples-only --no-align --single-transaction \
        --set=ON_ERROR_STOP=1 --set=apps="$apps" --set=home="$home" --set=other="$other"
}
moved="SELECT regexp_split_to_table(btrim(:'apps', E' \\n'), '\\s+')"

missing=$(run "$old" << END
SELECT slug FROM ($moved) AS moved (slug) WHERE slug NOT IN (SELECT slug FROM apps_config_app)
LIMIT 1;
END
)
if [ -n "$missing" ]; then
    echo "There is no app $missing." >&2
    exit 1
fi
sh "$(dirname -- "$0")/promote.sh" "$old" "$new"
run "$new" << END
UPDATE apps_config_app SET archived_at = now()
WHERE archived_at IS NULL AND slug NOT IN ($moved);
DELETE FROM apps_config_databasehome WHERE number <> :other;
INSERT INTO apps_config_databasehome VALUES (:other) ON CONFLICT DO NOTHING;
END
run "$old" << END
SET TRANSACTION READ WRITE;
UPDATE apps_config_app SET archived_at = now() WHERE archived_at IS NULL AND slug IN ($moved);
DELETE FROM apps_config_databasehome WHERE number <> :home;
END
psql "$old" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 \
    --command "ALTER SYSTEM RESET default_transaction_read_only" \
    --command "SELECT pg_reload_conf()" > /dev/null
echo "OLD is home $home, NEW is home $other."
