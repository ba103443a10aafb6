#!/bin/sh
# faults.sh BUILD SUITE FILE... - the net itself is tested: every fault that is planted in the
# kernels must make the suite fail.
#
# A fault is a block `#if RNND_FAULT == n` in one of the files, with a comment on that line that
# says what it is. For each n the command BUILD makes a plug-in (FAULT=n, and in FAULTY the .cu
# files that hold it: all, if a header does), then the command SUITE runs under some schedules
# until it fails. A suite that cannot run (77) proves nothing and is a failure here. Ends with a
# table of what found which: the last line "== TEST" that the suite printed.
set -u
build=$1 suite=$2
shift 2
log=$(mktemp) table=$(mktemp)
trap 'rm -f "$log" "$table"' EXIT

numbers=$(cat "$@" | sed -n 's/^#.*RNND_FAULT == \([0-9][0-9]*\).*/\1/p' | sort -n -u)
sources=$(for f in "$@"; do case $f in *.cu) echo "$f" ;; esac; done)

# holders N: the .cu files to compile for fault N.
holders() {
    files=$(grep -l "^#.*RNND_FAULT == $1\\>" "$@")
    case $files in
    *.cuh* | *.h*) echo "$sources" ;;
    *) echo "$files" ;;
    esac
}

# what_is N: the comment beside it.
what_is() {
    n=$1
    shift
    sed -n "s,^#.*RNND_FAULT == $n  */\\* *\\([^*]*\\).*,\\1,p" "$@" | head -n 1
}

# what_was_said: what tells the fault, of the test that ended the suite.
what_was_said() {
    awk '/^== / { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$log" |
        grep -v '^[0-9]*%:' |
        grep -m 1 -e 'simt: error' -e 'not ok' -e ':[FE]:' -e differ -e rror -e broken |
        cut -c 1-100
}

# row TEXT: of the table, for this fault.
row() {
    printf '%3s  %-66.66s  %s\n' "$FAULT" "$what" "$1" >>"$table"
}

missed=0 count=0
for FAULT in $numbers; do
    count=$((count + 1))
    FAULTY=$(holders "$FAULT" "$@" 2>/dev/null | tr '\n' ' ')
    what=$(what_is "$FAULT" "$@" | sed 's/ *$//')
    export FAULT FAULTY
    if ! sh -c "$build" >"$log" 2>&1 </dev/null; then
        echo "fault $FAULT ($what): cannot be built"
        row "cannot be built"
        cat "$log"
        missed=$((missed + 1))
        continue
    fi
    found=
    for seed in 1 2 3 4 5 inorder; do
        RNND_SIMT_SEED=$seed sh -c "$suite" >"$log" 2>&1 </dev/null
        status=$?
        [ $status != 0 ] && found=$seed && break
    done
    if [ -n "$found" ] && [ "$status" != 77 ]; then
        echo "fault $FAULT ($what): found, seed $found: $(what_was_said)"
        row "seed $found: $(sed -n 's/^== //p' "$log" | tail -n 1)"
    else
        echo "fault $FAULT ($what): NOT FOUND (exit status $status)"
        row "NOT FOUND"
        missed=$((missed + 1))
    fi
done
cat "$table"
echo "$count faults, $missed not found"
[ $missed = 0 ]
