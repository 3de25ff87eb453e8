"""A campaign in a process of its own, on the folder of services with recorded requests: ``python -m tests.kit.fuzzing``.

It notes each request before it is sent, prints what became of all of them, and exits with 1 if one has a fault. The parent
process recognizes a crash by the exit status, and reads the request from the note.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
from pathlib import Path

from asterism_proto.arrays import Frame
from graphkit.jit import CHECKED
from tests.kit.fuzzing import campaign, corpus
from tests.kit.fuzzing.guarded import guarded
from tests.kit.fuzzing.mutations import Mutation
from tests.kit.fuzzing.services import Recorded, Services, services


def protect(running: Services, *, before: bool) -> None:
    """Serve every version from arrays at protected pages."""
    for storaged in running.storageds:
        for held in storaged._holdings._spaces.values():
            held.versions = {number: guarded(version, before=before) for number, version in held.versions.items()}


def main() -> int:
    """Run a campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--storageds", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=12)
    parser.add_argument("--guard", choices=["after", "before"])
    parser.add_argument("--timeout-s", type=float, default=30.0)
    asked = parser.parse_args()
    faulthandler.enable()
    note = (asked.folder / "last-request").open("w")

    def begun(text: str) -> None:
        note.seek(0)
        note.truncate()
        note.write(text)
        note.flush()

    with services(asked.folder, asked.storageds) as running:
        if asked.guard:
            protect(running, before=asked.guard == "before")
        requests = corpus.read(asked.folder, asked.each)

        def send(original: Recorded, changed: Mutation) -> object:
            return running.answer(original.host, original.method, Frame(changed.head, changed.arrays), asked.timeout_s)

        before = corpus.answers(running, requests)
        found = campaign.run(requests, send, count=asked.count, seed=asked.seed, begun=begun)
        begun("none: the campaign is over")
        same = before == corpus.answers(running, requests)
    print(
        json.dumps(
            {
                "checked": CHECKED,
                "requests": found.requests,
                "faults": [f"{place}: {request}" for place, request in found.faults.items()],
                "same": same,
            }
        )
    )
    print(found.table(), file=sys.stderr)
    return 0 if same and not found.faults else 1


if __name__ == "__main__":
    sys.exit(main())
