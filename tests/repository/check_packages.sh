#!/bin/sh
# check_packages.sh - the recipes for packages agree with the sources: version, build
# dependencies, installed files; and parse, where their parsers are.
set -u
faults=0
fault() {
    echo "check_packages: $*" >&2
    faults=$((faults + 1))
}
version=$PACKAGE_VERSION
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
cd "${srcdir:?}" || exit 1

# Versions.
sed -n 1p debian/changelog | grep -q "^rnn-dist (${version}[)-]" ||
    fault "debian/changelog opens with $(sed -n 1p debian/changelog)"
recipe=packaging/spack/packages/rnn-dist/package.py
grep -qF "version(\"$version\"" $recipe || fault "$recipe has no version $version"

# What the program is built from: the group "build" of packages.sh, less what Debian's own
# tools bring along.
sed -n '/^    build)/,/;;/p' build-aux/packages.sh | tr -cs 'a-z0-9+.-' '\n' |
    grep -vx 'build\|wanted\|gcc\|libc6-dev\|make\|autoconf\|automake\|' >"$wanted"
[ "$(wc -l <"$wanted")" -ge 8 ] || fault "only these are wanted: $(cat "$wanted")"
depends=$(sed -n '/^Build-Depends:/,/^[A-Z]/p' debian/control)
while read -r package; do
    echo "$depends" | grep -q "^ ${package}[, ]" || fault "debian/control lacks $package"
done <"$wanted"

# Every file of a package's list is one that make installs.
for file in rnn_dist rnn_dist.py librnn_dist.a rnn_dist.pc; do
    cat debian/*.install | grep -q "/$file\$" || fault "no package has $file"
done

# Sections of Apptainer's format.
sections=$(sed -n 's/^%\([a-z]*\)$/\1/p' packaging/rnn_dist.def | tr '\n' ' ')
[ "$sections" = "files post test runscript labels help " ] ||
    fault "packaging/rnn_dist.def has the sections $sections"
grep -q '^Bootstrap: docker$' packaging/rnn_dist.def || fault "no Bootstrap in rnn_dist.def"
sed -n '/^%post$/,/^%test$/p' packaging/rnn_dist.def | sed 1d\;\$d | sh -n ||
    fault "%post of packaging/rnn_dist.def is no shell script"

# Parsers that may be here.
if command -v python3 >/dev/null; then
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' $recipe ||
        fault "$recipe is no Python"
fi
if command -v dpkg-parsechangelog >/dev/null; then
    [ "$(dpkg-parsechangelog -l debian/changelog -S Version)" = "$version" ] ||
        fault "debian/changelog does not parse"
fi
if command -v make >/dev/null; then
    MAKEFLAGS='' make -n -f debian/rules override_dh_auto_configure >/dev/null ||
        fault "debian/rules is no makefile"
fi

[ "$faults" = 0 ]
