#!/usr/bin/env bash
# The tests of the action: their command below ptxgen exec, with its findings as annotations, as SARIF and as JSON.
set -euo pipefail
mkdir -p "$PTXGEN_SARIF"
options=()
[[ -z "$PTXGEN_TARGET" ]] || options+=(--target "$PTXGEN_TARGET")
[[ -z "$PTXGEN_SCHEDULE" ]] || options+=(--schedule "$PTXGEN_SCHEDULE")
exec "$PTXGEN_PYTHON" -m ptxgen exec "${options[@]}" --timeout "$PTXGEN_TIMEOUT" --json "$PTXGEN_REPORT" \
  --format github --format "sarif=$PTXGEN_SARIF/exec.sarif" -- bash -c "$PTXGEN_RUN"
