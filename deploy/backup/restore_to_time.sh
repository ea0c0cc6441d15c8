#!/bin/sh
# Prepares a server as it was at a time: sh restore_to_time.sh COPY ARCHIVE FOLDER TIME
#   COPY      a folder base-... that base_backup.sh made before TIME
#   ARCHIVE   the folder of archive_wal.sh
#   FOLDER    the new server's data folder; it must not exist, or be empty
#   TIME      with its zone: '2026-11-28 03:10:00+00'
# Then start PostgreSQL with FOLDER, as the user who owns it. It replays the log up to the last
# transaction that was committed before TIME, and accepts writes.
set -eu
umask 077
copy=$1 archive=$2 folder=$3 time=$4
case $time in
*[+-][0-9][0-9] | *[+-][0-9][0-9]:[0-9][0-9] | *Z) ;;
*)
    echo "TIME needs a zone: '$time+00' is UTC." >&2
    exit 1
    ;;
esac
if [ -n "$(ls -A -- "$folder" 2> /dev/null)" ]; then
    echo "$folder is not empty: restore into a new folder." >&2
    exit 1
fi
pg_verifybackup --quiet "$copy"
mkdir -p -- "$folder"
cp -R -- "$copy/." "$folder"
chmod 0700 "$folder"
# The old server's archive must stay as it is: the new one archives nothing until you say where.
cat >> "$folder/postgresql.auto.conf" << END
restore_command = 'gzip --decompress --stdout "$archive/%f.gz" > "%p"'
recovery_target_time = '$time'
recovery_target_inclusive = off
recovery_target_action = promote
archive_command = '/bin/false'
END
: > "$folder/recovery.signal"
echo "Start PostgreSQL: pg_ctl start -D $folder"
