#!/bin/sh
# Archives a segment of PostgreSQL's write-ahead log. In postgresql.conf:
#   archive_mode = on
#   archive_command = 'sh /srv/scheduling/deploy/backup/archive_wal.sh "%p" "%f" /archive'
#   archive_timeout = 5min
# PostgreSQL tries again until this succeeds. The folder has to be on another disk than the database.
set -eu
segment=$1 name=$2 folder=$3
umask 077
if [ -e "$folder/$name" ]; then
    # After a crash, PostgreSQL archives a segment again: the same one is fine, another one is not.
    cmp -s -- "$segment" "$folder/$name"
    exit
fi
cp -- "$segment" "$folder/$name.part"
sync -- "$folder/$name.part"
mv -- "$folder/$name.part" "$folder/$name"
