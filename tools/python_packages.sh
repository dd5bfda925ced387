# Shell function for scripts that need packages of PyPI.
# shellcheck shell=sh

# need_packages VENV REQUIREMENTS MODULES: a virtual environment, made once, in which these modules
# (comma separated) can be imported. Returns 1 when PyPI cannot be reached; pip says why.
need_packages() {
    [ -x "$1/bin/python" ] && "$1/bin/python" -c "import $3" 2>/dev/null && return 0
    python3 -m venv "$1" || return 1
    "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
}
