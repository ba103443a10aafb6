#!/bin/sh
# make_figures.sh [FOLDER] - draws speed.svg, from speed.csv beside this script, and flow.svg,
# into FOLDER (default: beside this script). tests/repository/check_figures.sh compares them.
#
# Both pictures are 400 units wide and no text is smaller than 12, so that they are legible
# on a phone. They bring their own background: a viewer's colours need not match the page's.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
LC_ALL=C
export LC_ALL

# Shared by both: colours by class, light and dark, and elements. Text is escaped.
# shellcheck disable=SC2016 # dollars of awk
common='
function style(dark) {
    print "  .paper { fill: " (dark ? "#161b22" : "#ffffff") "; stroke: " \
        (dark ? "#30363d" : "#d8dee4") " }"
    print "  .text { fill: " (dark ? "#e6edf3" : "#1f2328") " }"
    print "  .muted { fill: " (dark ? "#9aa4af" : "#57606a") " }"
    print "  .strong { fill: " (dark ? "#58a6ff" : "#0b5cad") " }"
    print "  .soft { fill: " (dark ? "#2f5d92" : "#9cc7ee") " }"
    print "  .line { stroke: " (dark ? "#9aa4af" : "#57606a") "; fill: none }"
    print "  .one { stroke: " (dark ? "#f0a35e" : "#b35309") "; stroke-width: 1.5 }"
    print "  .head { fill: " (dark ? "#9aa4af" : "#57606a") " }"
    print "  .band { fill: " (dark ? "#1f2630" : "#f2f5f8") " }"
    print "  .box { fill: " (dark ? "#0d2f56" : "#dcecfb") "; stroke: " \
        (dark ? "#58a6ff" : "#0b5cad") " }"
    print "  .frame { fill: none; stroke: " (dark ? "#58a6ff" : "#0b5cad") \
        "; stroke-dasharray: 4 3 }"
    print "  .back { stroke: " (dark ? "#f0a35e" : "#b35309") "; stroke-width: 1.5; fill: none }"
    print "  .backhead { fill: " (dark ? "#f0a35e" : "#b35309") " }"
}
function open_svg(height, title, description) {
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"480\" height=\"" height * 1.2 \
        "\" viewBox=\"0 0 400 " height "\" role=\"img\" aria-labelledby=\"t d\">"
    print "<title id=\"t\">" escape(title) "</title>"
    print "<desc id=\"d\">" escape(description) "</desc>"
    print "<style>"
    print "  text { font: 12px system-ui, -apple-system, \"Segoe UI\", Roboto, " \
        "\"Helvetica Neue\", Arial, sans-serif }"
    print "  .b { font-weight: 600 }"
    print "  .h { font-size: 15px; font-weight: 600 }"
    style(0)
    print "  @media (prefers-color-scheme: dark) {"
    style(1)
    print "  }"
    print "</style>"
    rect("paper", 0.5, 0.5, 399, height - 1, 8)
}
function close_svg() { print "</svg>" }
function escape(s) {
    gsub(/&/, "\\&amp;", s)
    gsub(/</, "\\&lt;", s)
    gsub(/>/, "\\&gt;", s)
    return s
}
function rect(class, x, y, w, h, r) {
    print "<rect class=\"" class "\" x=\"" x "\" y=\"" y "\" width=\"" w "\" height=\"" h \
        "\" rx=\"" r "\"/>"
}
function text(class, x, y, s, anchor) {
    print "<text class=\"" class "\" x=\"" x "\" y=\"" y "\"" \
        (anchor ? " text-anchor=\"" anchor "\"" : "") ">" escape(s) "</text>"
}
function path(class, d, extra) {
    print "<path class=\"" class "\" d=\"" d "\"" (extra ? " " extra : "") "/>"
}
'

speed() {
    # shellcheck disable=SC2016 # dollars of awk
    awk -F, "$common"'
    function grouped(n) {       # 25980 -> 25 980
        out = ""
        for (; length(n) > 3; n = substr(n, 1, length(n) - 3))
            out = " " substr(n, length(n) - 2) out
        return n out
    }
    function times(x) { return sprintf(x < 10 ? "%.1f×" : "%.0f×", x) }
    function bar(class, y, x) {
        rect(class, left, y, sprintf("%.1f", x * unit), 10, 1.5)
        text(class == "strong" ? "text b" : "text", sprintf("%.1f", left + x * unit + 5), \
            y + 9.5, times(x))
    }
    /^#/ { next }
    NF != 6 || $5 <= 0 || $6 <= 0 { bad = NR; exit }
    {
        n++
        model[n] = $2
        data[n] = $3
        gsub(/;/, ",", data[n])
        ours[n] = $6
        padded[n] = $6 / $5
        packed[n] = $4 == "" ? 0 : $6 / $4
        if (padded[n] > most) most = padded[n]
        if (packed[n] > most) most = packed[n]
    }
    END {
        if (bad || !n) {
            print "make_figures.sh: speed.csv: line " bad " is not a measurement" >"/dev/stderr"
            exit 1
        }
        left = 16; right = 384; top = 130
        unit = 328 / most       # room for the number after the longest bar
        for (i = 1; i <= n; i++) {
            at[i] = top + used
            used += packed[i] ? 65 : 53
        }
        bottom = top + used
        open_svg(bottom + 38, "Training speed of rnn_dist, as a multiple of that of PyTorch", \
            "Bars for " n " models, on one CPU thread; the longer, the faster than PyTorch.")
        text("text h", left, 28, "How many times as fast as PyTorch?")
        text("muted", left, 46, "Whole training updates, one CPU thread, AVX-512")
        rect("strong", left, 60, 10, 10, 1.5)
        text("text", left + 16, 69.5, "against PyTorch with padded batches")
        rect("soft", left, 78, 10, 10, 1.5)
        text("text", left + 16, 87.5, "against PyTorch with packed sequences")
        path("one", "M" left + 5 " 95v14")
        text("text", left + 16, 105.5, "PyTorch itself (1×)")
        for (i = 1; i <= n; i++) {
            y = at[i] + 26
            h = packed[i] ? 22 : 10
            text("text b", left, at[i] + 4, model[i])
            text("muted", left, at[i] + 19, data[i])
            text("muted", right, at[i] + 19, grouped(ours[i]) " steps/s", "end")
            bar("strong", y, padded[i])
            if (packed[i])
                bar("soft", y + 12, packed[i])
            path("one", sprintf("M%.1f %gv%d", left + unit, y - 3, h + 6))
        }
        text("muted", left, bottom + 6, "Steps per second are those of rnn_dist; padding is")
        text("muted", left, bottom + 22, "not counted. Data: doc/speed.csv")
        close_svg()
    }' "$here/speed.csv"
}

flow() {
    # shellcheck disable=SC2016 # dollars of awk
    awk "$common"'
    function band(y, h, title) {
        rect("band", 8, y, 384, h, 6)
        text("muted b", 382, y + 17, title, "end")
    }
    function node(y, name, says) {
        rect("box", 40, y, 108, 26, 4)
        text("text b", 94, y + 17.5, name, "middle")
        text("text", 158, y + 17.5, says)
    }
    function chip(x, y, w, name) {
        rect("box", x, y, w, 26, 4)
        text("text b", x + w / 2, y + 17.5, name, "middle")
    }
    function down(y, h) {
        path("line", "M94 " y "v" h - 5)
        path("head", "M90 " y + h - 6 "h8l-4 6z")
    }
    function right(x, y, w) {
        path("line", "M" x " " y "h" w - 5)
        path("head", "M" x + w - 6 " " y - 4 "v8l6 -4z")
    }
    BEGIN {
        open_svg(592, "What happens in an update of rnn_dist", \
            "Data file, dataset, plan, shard, batch, model, loss; gradients to the reducer " \
            "and communicator, the optimizer, new parameters, and a checkpoint.")
        text("text h", 16, 28, "From the data file to a new checkpoint")

        band(42, 136, "THE SAME ON EVERY RANK")
        band(186, 178, "EACH RANK ITS OWN PART")
        band(372, 104, "SUMMED OVER ALL RANKS")
        band(484, 100, "THE SAME ON EVERY RANK")

        node(66, "data file", "sequences end to end, in HDF5")
        down(92, 12)
        node(104, "dataset", "checks the file, reads what is needed")
        down(130, 12)
        node(142, "plan", "which sequences make which update")
        down(168, 42)

        node(210, "shard", "sequences, assigned by cost")
        down(236, 12)
        node(248, "batch", "packed rows, no padding")
        down(274, 20)
        rect("frame", 30, 294, 288, 40, 6)
        text("strong b", 316, 287, "model", "end")
        chip(37, 301, 88, "embedding")
        right(125, 314, 12)
        chip(137, 301, 118, "recurrent layers")
        right(255, 314, 12)
        chip(267, 301, 44, "head")
        right(311, 314, 29)
        chip(340, 301, 42, "loss")

        path("back", "M361 327V351H94V395")
        path("backhead", "M90 394h8l-4 6z")
        text("backhead", 228, 347, "gradients", "middle")

        node(400, "reducer", "gradients, in buckets")
        down(426, 12)
        node(438, "communicator", "MPI, or NCCL on GPUs")
        down(464, 46)

        node(510, "optimizer", "divides once, clips, updates")
        down(536, 12)
        node(548, "checkpoint", "written by rank 0, in HDF5")
        path("back", "M40 523H18V314H25")
        path("backhead", "M24 310v8l6 -4z")
        print "<text class=\"backhead\" text-anchor=\"middle\" " \
            "transform=\"translate(31 432) rotate(-90)\">new parameters</text>"
        close_svg()
    }'
}

speed >"$folder/speed.svg.new"
flow >"$folder/flow.svg.new"
mv "$folder/speed.svg.new" "$folder/speed.svg"
mv "$folder/flow.svg.new" "$folder/flow.svg"
