#!/usr/bin/env bash
# The check of the action: every file and folder of the input, one a line, as annotations and as SARIF.
set -euo pipefail
mkdir -p "$PTXGEN_SARIF"
paths=()
while IFS= read -r line; do
  [[ -z "${line// /}" ]] || paths+=("$line")
done <<< "$PTXGEN_CHECK"
exec "$PTXGEN_PYTHON" -m ptxgen check --format github --format "sarif=$PTXGEN_SARIF/check.sarif" -- "${paths[@]}"
