#!/bin/sh
# Makes a standby the primary, without the loss of a transaction: sh promote.sh OLD NEW
#   OLD    URL of the primary, as a superuser
#   NEW    URL of its standby, as a superuser
# From the first change on, OLD answers reads only; the service then answers writes with 503 and
# Retry-After. Until NEW is promoted, there is a way back, in OLD:
#   ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf();
# Can be stopped and repeated.
set -eu
old=$1 new=$2
ask() {
    psql "$1" --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --command "$2"
}

read_only="SHOW default_transaction_read_only"
follows=$(ask "$new" "SELECT pg_is_in_recovery()")
frozen=$(ask "$old" "$read_only")
if [ "$follows" = f ] && [ "$frozen" = on ]; then
    echo "NEW is the primary." # the last run was stopped after this
    exit 0
fi
follows=$(ask "$new" "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'")
identifier="SELECT system_identifier FROM pg_control_system()"
old_identifier=$(ask "$old" "$identifier")
new_identifier=$(ask "$new" "$identifier")
if [ "$follows" != 1 ] || [ "$old_identifier" != "$new_identifier" ]; then
    echo "NEW does not follow OLD." >&2
    exit 1
fi
# Writes wait until NEW has all of it.
replayed=$(ask "$new" "SELECT pg_last_wal_replay_lsn()")
behind=$(ask "$old" "SELECT (pg_current_wal_lsn() - '$replayed')::bigint")
if [ "$behind" -gt "${MAX_BYTES_BEHIND:-16777216}" ]; then
    echo "NEW is $behind bytes behind OLD: try again when it is closer." >&2
    exit 1
fi

ask "$old" "ALTER SYSTEM SET default_transaction_read_only = on"
ask "$old" "SELECT pg_reload_conf()" > /dev/null
until [ "$(ask "$old" "$read_only")" = on ]; do sleep 0.1; done
# Sessions that began before may be in the middle of a write.
until [ "$(ask "$old" "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND backend_start < pg_conf_load_time()")" = 0 ]; do
    sleep 0.1
done
# The end of all that was ever committed.
last=$(ask "$old" "SELECT pg_current_wal_flush_lsn()")
until [ "$(ask "$new" "SELECT pg_last_wal_replay_lsn() >= '$last'")" = t ]; do sleep 0.1; done
if [ "$(ask "$new" "SELECT pg_promote()")" != t ]; then
    echo "NEW was not promoted within a minute: see its log." >&2
    exit 1
fi
echo "NEW is the primary."
