#!/bin/sh
# check_library.sh - librnn_dist(3) names every function that the installed headers declare,
# and no other.
set -u
cd "${srcdir:-$(dirname "$0")/../..}" || exit 1
page=man/librnn_dist.3.in
# A declaration ends a word with "(" and may have spaces and * before its name; a comment
# writes a name with "()".
declared=$(sed 's/rnnd_[a-z0-9_]*()//g' lib/rnn_dist.h lib/rnn_dist_*.h |
    grep -o 'rnnd_[a-z0-9_]*(' | tr -d '(' | sort -u)
named=$(grep '^\.' "$page" | grep -o 'Fn rnnd_[a-z0-9_]*' | sed 's/^Fn //' | sort -u)
faults=0
for name in $declared; do
    echo "$named" | grep -qx "$name" || {
        echo "$page: does not name $name"
        faults=$((faults + 1))
    }
done
for name in $named; do
    echo "$declared" | grep -qx "$name" || {
        echo "$page: names $name, which no installed header declares"
        faults=$((faults + 1))
    }
done
count=$(echo "$declared" | wc -l)
echo "$count functions; $faults faults"
[ "$faults" = 0 ] && [ "$count" -gt 50 ]
