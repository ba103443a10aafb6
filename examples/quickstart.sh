#!/bin/sh
# quickstart.sh - from a checkout to a trained model in one command: installs what is missing,
# builds in ./build, packs the Japanese Vowels (who is speaking, by 12 numbers a step, 7 to 29
# steps long), trains an LSTM on two ranks and measures it on speech it has not seen. A fifth
# of the training set chooses the epoch; the test set takes no part in that.
# Run it again at will; the model of the last run is replaced.
set -eu
cd "$(dirname "$0")/.."

sh build-aux/packages.sh build check
. tests/mpi_env.sh

echo "Building in $PWD/build"
mkdir -p build/quickstart
log=build/quickstart/build.log
# shellcheck disable=SC2016 # expanded by the inner shell
sh build-aux/follow.sh $log sh -ec '
    [ -x configure ] || ./autogen.sh
    cd build
    [ -f Makefile ] || ../configure
    make -j "$(nproc)"' || {
    status=$?
    echo "quickstart: the build failed; all of it is in $PWD/$log" >&2
    exit $status
}

rnn_dist=$PWD/build/bin/rnn_dist
data=$PWD/examples/japanese_vowels
cd build/quickstart
rm -rf run

echo "Packing the data"
"$rnn_dist" pack ts --split 0.2 "$data/JapaneseVowels_TRAIN.ts" train.h5
"$rnn_dist" pack ts "$data/JapaneseVowels_TEST.ts" test.h5

echo "Training an LSTM on two ranks"
mpirun -np 2 "$rnn_dist" train --data train.h5 --valid train-valid.h5 --run-dir run \
    --normalize --cell lstm --hidden 100 --epochs 30 --batch 27 \
    --optimizer adam --lr 0.005 --clip-norm 1

echo "Measuring it on the test set"
"$rnn_dist" eval run --data test.h5 --json >eval.json
value() { sed -n "s/.*\"$1\": *\([0-9.e-]*\).*/\1/p" eval.json; }
[ -n "$(value accuracy)" ] || { echo "quickstart: no accuracy in eval.json" >&2; exit 1; }


cat <<END

The program is $rnn_dist. To call it by its name:
    export PATH="${rnn_dist%/*}:\$PATH"
    rnn_dist help
In $PWD:
    train.h5, train-valid.h5, test.h5   the data
    run                                 checkpoints, metrics.jsonl, config.ini
    eval.json                           the result on the test set
A page with its curves:
    rnn_dist report $PWD/run --out report.html

END
awk -v accuracy="$(value accuracy)" -v n="$(value targets)" \
    'BEGIN { printf "accuracy %.3f (%.0f of %d)\n", accuracy, accuracy * n, n }'
