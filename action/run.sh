#!/usr/bin/env bash
# The second step of the action: the command of the tests, below ptxgen exec.
set -euo pipefail
exec "$PTXGEN_PYTHON" -m ptxgen exec --target "$PTXGEN_TARGET" --schedule "$PTXGEN_SCHEDULE" \
  --timeout "$PTXGEN_TIMEOUT" --json "$PTXGEN_REPORT" -- bash -c "$PTXGEN_RUN"
