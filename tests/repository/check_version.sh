#!/bin/sh
# check_version.sh - the version is written in configure.ac alone, and all else agrees with it.
set -u
faults=0
fault() {
    echo "check_version: $*" >&2
    faults=$((faults + 1))
}
version=$PACKAGE_VERSION

grep -qF "AC_INIT([rnn_dist], [$version])" "${srcdir:?}/configure.ac" ||
    fault "configure.ac does not say $version"
news=$(sed -n 's/^\([0-9][0-9.]*\).*/\1/p' "$srcdir/NEWS" | head -n 1)
[ "$news" = "$version" ] || fault "NEWS opens with '$news', not $version"
grep -q "^| Version | ${version}[ ,|]" "$srcdir/README.md" ||
    fault "README.md does not say $version"
grep -qx "Version: $version" rnn_dist.pc || fault "rnn_dist.pc does not say $version"
said=$(rnn_dist --version | head -n 1)
case $said in
*" $version") ;;
*) fault "rnn_dist --version says '$said'" ;;
esac
for page in man/*.[1-9]; do
    grep -qx "\.Os rnn_dist $version" "$page" || fault "$page does not say $version"
done

# The full version as a literal anywhere else will be forgotten at the next release.
cd "$srcdir" || exit 1
places=$(find lib kernels bin man examples -type f \( -name '*.[ch]' -o -name '*.in' \
    -o -name '*.def' -o -name '*.sh' \) -exec grep -nF "$version" {} +)
[ -z "$places" ] || fault "the version is written out in: $places"

[ "$faults" = 0 ]
