# join.awk - joins utterances of a .ts file at random into strings of 1 to 6.
#
# awk -v seed=N -v count=N -v steps=FILE -v table=FILE -f join.awk FILE.ts
#
# Writes a table of steps (string, x0, x1, ...) and one of labels (string, labels): who
# spoke, in order. Every utterance is used as often as the others, or once more.
function random(n) {
    seed = (seed * 16807) % 2147483647
    return seed % n
}

# The places of all utterances in another order.
function shuffle(    i, j, swap) {
    for (i = utterances; i > 1; i--) {
        j = 1 + random(i)
        swap = order[i]
        order[i] = order[j]
        order[j] = swap
    }
    taken = 0
}

# Appends an utterance to the string s: a column of each feature, separated by colons.
function speak(s, u,    features, column, k, t, n, row) {
    features = split(utterance[u], column, ":") - 1
    n = split(column[1], row, ",")
    for (t = 1; t <= n; t++) {
        printf "s%04d", s >steps
        for (k = 1; k <= features; k++) {
            split(column[k], row, ",")
            printf ",%s", row[t] >steps
        }
        print "" >steps
    }
    return column[features + 1]
}

/^[#@]/ || NF == 0 { next }
{
    sub(/\r$/, "")
    utterance[++utterances] = $0
    order[utterances] = utterances
}

END {
    n = split(utterance[1], column, ":") - 1
    printf "string" >steps
    for (k = 0; k < n; k++)
        printf ",x%d", k >steps
    print "" >steps
    print "string,labels" >table
    taken = utterances
    for (s = 0; s < count; s++) {
        text = ""
        for (left = 1 + random(6); left > 0; left--) {
            if (taken == utterances)
                shuffle()
            text = text (text == "" ? "" : " ") speak(s, order[++taken])
        }
        printf "s%04d,%s\n", s, text >table
    }
}
