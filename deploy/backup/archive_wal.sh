#!/bin/sh
# Archives a segment of PostgreSQL's write-ahead log, compressed. In postgresql.conf:
#   archive_mode = on
#   archive_command = 'sh /srv/scheduling/deploy/backup/archive_wal.sh "%p" "%f" /archive'
#   archive_timeout = 5min
# PostgreSQL tries again until this succeeds. The folder has to be on another disk than the database.
set -eu
segment=$1 archived=$3/$2.gz
umask 077
if [ -e "$archived" ]; then
    # After a crash, PostgreSQL archives a segment again: the same one is fine, another one is not.
    gzip --decompress --stdout -- "$archived" | cmp -s -- "$segment" -
    exit
fi
gzip --stdout -- "$segment" > "$archived.part"
sync -- "$archived.part"
mv -- "$archived.part" "$archived"
