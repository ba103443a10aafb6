#!/bin/sh
# follow.sh LOG COMMAND... - runs a command with its output in LOG, and says every few seconds
# how far it is: the seconds and the last line of its output. If the command fails, the end of
# the log is shown. The exit status is that of the command.
set -u
log=$1
shift
"$@" >"$log" 2>&1 </dev/null &
pid=$!
trap 'kill "$pid" 2>/dev/null; exit 1' HUP INT TERM
begun=$(date +%s) spoke=$(date +%s)
while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    now=$(date +%s)
    [ $((now - spoke)) -lt 5 ] && continue
    spoke=$now
    printf '    %4d s: %.66s\n' $((now - begun)) "$(tail -n 1 "$log" | tr -d '\033\r')"
done
wait "$pid"
status=$?
if [ $status != 0 ]; then
    tail -n 30 "$log" >&2
    echo "${0##*/}: status $status from: $*" >&2
fi
exit $status
