#!/bin/sh
# faults.sh BUILD SUITE FILE... - tests the tests: every fault that the kernels declare must
# make the suite fail.
#
# A fault is a condition PLANTED(n, "what is wrong") in one of the files. For each n the command
# BUILD makes a plug-in (FAULT=n, and in FAULTY the .cu files to compile again: those that hold
# it, or that include a header that does), then the command SUITE runs under some schedules
# until it fails. A suite that cannot run (77) proves nothing and is a failure here. As many
# faults are tried at once as there are processors, or RNND_FAULT_JOBS. Ends with a table of
# what found which: the last line "== TEST" that the suite printed.
set -u
build=$1 suite=$2
shift 2
work=$(mktemp -d)
planted=$work/planted
trap 'rm -rf "$work"' EXIT

# A line for each: NUMBER FILE WHAT. A call may be broken over lines.
for file in "$@"; do
    tr -s ' \n' '  ' <"$file" | grep -o 'PLANTED([0-9][0-9]*, "[^"]*")' |
        sed "s,^PLANTED(\([0-9]*\)\, \"\(.*\)\")\$,\1 $file \2,"
done >"$planted"
numbers=$(cut -d' ' -f1 "$planted" | sort -n -u)
twice=$(cut -d' ' -f1,3- "$planted" | sort -u | cut -d' ' -f1 | uniq -d)
[ -z "$twice" ] || {
    echo "one number for two faults, of which one would hide the other: $twice"
    exit 1
}

# includers FILE...: the .cu files among all, and those that include one of the headers among
# them, directly or not.
includers() {
    for one in "$@"; do
        case $one in
        *.cu) echo "$one" ;;
        *)
            # shellcheck disable=SC2046,SC2086 # lists of files
            set -- $(grep -l "include \"\(.*/\)\?$(basename "$one")\"" $files)
            [ $# = 0 ] || includers "$@"
            ;;
        esac
    done
}
files=$*

# holders N: the .cu files to compile for fault N, each once.
holders() {
    # shellcheck disable=SC2046 # a list of files
    includers $(sed -n "s,^$1 \([^ ]*\) .*,\1,p" "$planted" | sort -u) | sort -u
}

# what_is N: in words.
what_is() {
    sed -n "s,^$1 [^ ]* ,,p" "$planted" | head -n 1
}

# what_was_said LOG: what tells the fault, of the test that ended the suite.
what_was_said() {
    awk '/^== / { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$1" |
        grep -v '^[0-9]*%:' |
        grep -m 1 -e 'simt: error' -e 'not ok' -e ':[FE]:' -e differ -e rror -e broken |
        cut -c 1-100
}

# try FAULT: plants it. Its row of the table is $work/FAULT/row, which begins with "-" where
# nothing found it.
try() {
    FAULT=$1
    FAULTY=$(holders "$FAULT" | tr '\n' ' ')
    export FAULT FAULTY
    what=$(what_is "$FAULT") log=$work/$FAULT/log verdict="-cannot be built" found=
    if ! sh -c "$build" >"$log" 2>&1 </dev/null; then
        echo "fault $FAULT ($what): cannot be built"
        cat "$log"
    else
        for seed in 1 2 3 4 5 inorder; do
            RNND_SIMT_SEED=$seed sh -c "$suite" >"$log" 2>&1 </dev/null
            status=$?
            [ $status != 0 ] && found=$seed && break
        done
        if [ -n "$found" ] && [ "$status" != 77 ]; then
            echo "fault $FAULT ($what): found, seed $found: $(what_was_said "$log")"
            verdict=" seed $found: $(sed -n 's/^== //p' "$log" | tail -n 1)"
        else
            echo "fault $FAULT ($what): NOT FOUND (exit status $status)"
            verdict="-NOT FOUND"
        fi
    fi
    printf '%.1s%3s  %-66.66s  %s\n' "$verdict" "$FAULT" "$what" "${verdict#?}" \
        >"$work/$FAULT/row"
}

# Each worker takes the next fault that no other has taken.
worker() {
    for number in $numbers; do
        mkdir "$work/$number" 2>/dev/null && try "$number"
    done
}
for _ in $(seq "${RNND_FAULT_JOBS:-$(nproc)}"); do
    worker &
done
wait

for number in $numbers; do
    cat "$work/$number/row"
done >"$work/table"
cut -c 2- "$work/table"
missed=$(grep -c '^-' "$work/table")
echo "$(wc -l <"$work/table") faults, $missed not found"
[ "$missed" = 0 ]
