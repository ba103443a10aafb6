# shellcheck shell=sh
# tally.sh - sourced: what a test tried, how often, and what came of it. `make
# check-reliability` makes its table of the lines that this prints:
#   # tried 12, lost 0, hung 0, wrong 0, other 0: kills while it saves
# Whoever sources it has `fault`, which counts by tally_fault.

# trying WHAT: what follows is counted under this name.
trying() {
    tally_end
    tally_what=$1 tally_tried=0
    tally_lost=0 tally_hung=0 tally_wrong=0 tally_other=0
}
tally_what=''

# tried [COUNT]: that many more.
tried() {
    tally_tried=$((tally_tried + ${1:-1}))
}

# The line of what was tried last.
tally_end() {
    [ -z "$tally_what" ] || echo "# tried $tally_tried, lost $tally_lost, hung $tally_hung," \
        "wrong $tally_wrong, other $tally_other: $tally_what"
    tally_what=''
}

# One more fault of the kind: lost, hung or wrong before one of these, else other.
tally_kind=other
tally_fault() {
    [ -z "$tally_what" ] || case $tally_kind in
    lost) tally_lost=$((tally_lost + 1)) ;;
    hung) tally_hung=$((tally_hung + 1)) ;;
    wrong) tally_wrong=$((tally_wrong + 1)) ;;
    other) tally_other=$((tally_other + 1)) ;;
    esac
}

# lost, hung, wrong WORDS...: something announced is gone; it does not end; a result is not
# what it should be, and nobody says so.
lost() {
    tally_kind=lost
    fault "$@"
    tally_kind=other
}
hung() {
    tally_kind=hung
    fault "$@"
    tally_kind=other
}
wrong() {
    tally_kind=wrong
    fault "$@"
    tally_kind=other
}
