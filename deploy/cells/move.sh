#!/bin/sh
# Moves a home to another place, where its standby and its web run: sh move.sh OLD NEW ROUTER FROM TO
#   OLD, NEW   as for promote.sh
#   ROUTER     HAProxy's socket, such as /run/haproxy/admin.sock
#   FROM       the servers that leave, such as "home_7/web1 home_7/web2"
#   TO         the servers that come; in cells.cfg, they are `disabled` until now
# Stop the workers and beat of OLD before. Afterwards, remove the servers of FROM from cells.cfg, and
# `disabled` from those of TO. Can be stopped and repeated.
set -eu
router=$3 from=$4 to=$5
tell_router() {
    answer=$(echo "$1" | socat - "$router")
    if [ -n "$answer" ]; then
        echo "$1: $answer" >&2
        exit 1
    fi
}

sh "$(dirname -- "$0")/promote.sh" "$1" "$2"
for server in $to; do tell_router "enable server $server"; done
for server in $from; do tell_router "disable server $server"; done
