#!/bin/sh
# valgrind.sh - each command once under valgrind (bench with LONG=1): no invalid access, no use
# of what was never set, no lost memory that is ours. tests/valgrind.supp lists what other
# libraries do. It takes minutes, and is run by sh tests/run.sh valgrind.
command -v valgrind >/dev/null || { echo "no valgrind here"; exit 77; }
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/cases/lib.sh"
cd "$work"

cat >checked <<END
#!/bin/sh
exec valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
    --show-leak-kinds=definite --num-callers=30 --suppressions='$srcdir/tests/valgrind.supp' \
    '$(command -v "$RNN_DIST")' "\$@"
END
chmod +x checked
RNN_DIST=$work/checked

data few task=classify outputs=3 lengths=3,1,4,1,5,9,2,6
options="--hidden 5 --batch 4 --threads 1 --progress none"
printf '%s\n' '@problemName a' '@univariate true' '@classLabel true x y' @data 1,2:x 4,5:y \
    >a.ts
echo 'a few words, and a few more' >words.txt

expect 0 1 info
expect 0 1 pack ts a.ts packed.h5
expect 0 1 inspect packed.h5
for ranks in 1 2; do
    # shellcheck disable=SC2086 # a list of options
    expect 0 $ranks train --data few.h5 --valid few.h5 --run-dir run$ranks $options --epochs 2 \
        --save-every 1 --dropout 0.2
    expect 0 $ranks train --resume --run-dir run$ranks --epochs 3
done
expect 0 1 eval run1 --data few.h5 --threads 1
expect 0 1 predict run1 --data few.h5 --out scores.h5 --csv scores.csv --threads 1
expect 0 1 inspect run1/best.h5
expect 0 1 report run1 --out run.html
expect 0 1 export run1 model.safetensors
expect 0 1 import model.safetensors imported.h5
expect 0 1 pack text-chars words.txt text.h5
# shellcheck disable=SC2086
expect 0 1 train --data text.h5 --run-dir text $options --epochs 1
expect 0 1 sample text --length 5
# shellcheck disable=SC2086
expect 0 1 verify --data few.h5 $options --max-updates 2
# bench measures large products, which take very long here.
# shellcheck disable=SC2086
[ -z "${LONG:-}" ] || expect 0 1 bench --data few.h5 $options --max-updates 2
done_testing
