"""The process that runs definitions on a GPU: names on standard input, a line of JSON for each on standard output.

A kernel that faults ends CUDA for its process, and one that hangs never returns: the parent starts another process for
the definitions that are left.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib

from microtests.harness import kit, recordings
from microtests.harness.definition import definitions
from microtests.harness.run import digest_of, run
from ptxgen.gpu import Gpu


def main() -> int:
    """Run the definitions named on standard input."""
    known = definitions()
    keep = kit.entry if "--whole" in sys.argv[1:] else recordings.entry
    gpu = Gpu()
    for name in sys.stdin.read().split("\n"):
        if not name:
            continue
        print(json.dumps({"begins": name}), flush=True)
        definition = known[name]
        try:
            result = run(definition, gpu)
            answer = {"name": name, "verdict": result.verdict, "message": result.message, "seconds": result.seconds}
            draft = definition.draft(gpu.target) if result.verdict in ("passed", "wrong") else None
            if draft is not None and (result.outputs or (draft.fault and result.verdict == "passed")):
                assert result.digest == digest_of(draft), "the definition makes other inputs each time"
                answer["entry"] = base64.b64encode(zlib.compress(json.dumps(keep(result, draft)).encode())).decode()
        except Exception as error:  # one definition must not end the others
            answer = {"name": name, "verdict": "failed", "message": f"{type(error).__name__}: {error}", "seconds": 0}
        print(json.dumps(answer), flush=True)
        if answer["verdict"] == "failed" or "CUDA_ERROR" in answer["message"]:
            return 3  # the context may be lost: the parent goes on with a new process
    return 0


if __name__ == "__main__":
    sys.exit(main())
