#!/bin/sh
# Builds the documentation's pages, site/html in the build directory, and fails on any warning.
#   sh tools/test_site.sh [BUILD_DIR]
# Needs PyPI once; the virtual environment stays in the build directory. Exit code 77, with words: PyPI
# cannot be reached, nothing was built. What the pages show is run by the test test_tutorials.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$top/build}" && pwd)
venv=$build/site-venv
out=$build/site
if [ ! -x "$venv/bin/mkdocs" ] || ! cmp -s "$top/site/requirements.txt" "$venv/requirements.txt"; then
    python3 -m venv "$venv"
    if ! "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$top/site/requirements.txt"; then
        echo "The documentation was NOT built: mkdocs cannot be installed from PyPI (see above)"
        exit 77
    fi
    cp "$top/site/requirements.txt" "$venv/requirements.txt"
fi
mkdir -p "$out"
python3 "$top/site/prepare.py" "$build/rfexec" "$out"
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict -f "$out/mkdocs.yml" >"$out/log" 2>&1 || {
    cat "$out/log"
    exit 1
}
if grep -E 'WARN|ERROR' "$out/log"; then exit 1; fi
rm -f "$out/html/404.html" # for servers alone, and its links for such as have it at their root
# Pages are read where there is no network: none of them loads anything from elsewhere.
if grep -rlE '<(script|img|iframe)[^>]* src="?(https?:)?//|<link[^>]*stylesheet[^>]* href="?(https?:)?//' \
    --include=*.html "$out/html"; then
    echo "these pages load something from the network"
    exit 1
fi
pages=$(find "$out/html" -name '*.html' | wc -l)
[ "$pages" -ge 20 ] || {
    echo "only $pages pages"
    exit 1
}
echo "$pages pages in $out/html"
