#!/bin/sh
# quickstart.sh - from a checkout to a trained model in one command: installs what is missing,
# builds in ./build, packs the Japanese Vowels (who is speaking, by 12 numbers a step, 7 to 29
# steps long), trains an LSTM on two ranks and measures it on speech it has not seen.
# Run it again at will; the model of the last run is replaced.
set -eu
cd "$(dirname "$0")/.."

sh build-aux/packages.sh build check
. tests/mpi_env.sh

echo "Building in $PWD/build"
mkdir -p build/quickstart
log=build/quickstart/build.log
build() {
    [ -x configure ] || ./autogen.sh
    cd build
    [ -f Makefile ] || ../configure
    make -j "$(nproc)"
}
# Not `build || …', which would switch set -e off inside.
set +e
(set -e; build) >$log 2>&1
status=$?
set -e
if [ $status != 0 ]; then
    tail -n 30 $log >&2
    echo "quickstart: the build failed; all of it is in $PWD/$log" >&2
    exit $status
fi

rnn_dist=$PWD/build/bin/rnn_dist
data=$PWD/examples/japanese_vowels
cd build/quickstart
rm -rf run

echo "Packing the data"
"$rnn_dist" pack ts "$data/JapaneseVowels_TRAIN.ts" train.h5
"$rnn_dist" pack ts "$data/JapaneseVowels_TEST.ts" test.h5

echo "Training an LSTM on two ranks"
mpirun -np 2 "$rnn_dist" train --data train.h5 --run-dir run --normalize \
    --cell lstm --hidden 100 --epochs 30 --batch 27 \
    --optimizer adam --lr 0.005 --clip-norm 1 --log-every 50

echo "Measuring it on the test set"
"$rnn_dist" eval run --data test.h5 --json >eval.json
accuracy=$(sed -n 's/.*"accuracy": *\([0-9.e-]*\).*/\1/p' eval.json)
[ -n "$accuracy" ] || { echo "quickstart: no accuracy in eval.json" >&2; exit 1; }

cat <<END

Accuracy on the test set: $accuracy
  program      $rnn_dist
  data         $PWD/train.h5, test.h5
  model        $PWD/run (checkpoints, metrics.jsonl, config.ini)
  evaluation   $PWD/eval.json
Next: $rnn_dist help
END
