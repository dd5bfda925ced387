#!/bin/sh
# Runs the program at random for up to an hour: 1,000 runs inside budgets, 100 inside the smallest
# there is, 1,000 that are killed, and holds peak memory, fingerprints and files to what is promised.
# The last lines are a table for docs/notes/soak.md and "N passed, N failed".
#
#   tools/scripts/soak.sh [--runs N] [--smallest N] [--kills N] [--seconds S] [--seed N] [--work DIR] [RFEXEC]
#
# RFEXEC is the built program (default: build/rfexec). JPEG pictures come from the build's
# tests/make_big_image; without it there are none.
set -eu
exec python3 "$(dirname "$0")/soak/soak.py" "$@"
