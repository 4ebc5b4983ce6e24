#!/usr/bin/env bash
# The first step of the action: ptxgen, with what reads compressed fatbins.
set -euo pipefail
"$PTXGEN_PYTHON" -m pip install --quiet "${PTXGEN_PACKAGE:-$PTXGEN_SOURCE}" lz4 zstandard
