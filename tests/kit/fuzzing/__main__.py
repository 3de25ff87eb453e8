"""Campaign in its own process, on recorded services: ``python -m tests.kit.fuzzing``.

The folder of services has the recorded requests.

It records each request before it is sent, prints the outcomes of all, and exits with 1 if one
has a fault. The parent process recognizes a crash by the exit status, and reads the request from
the note."""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
from pathlib import Path

from asterism_graphkit.compile.jit import CHECK_BOUNDS
from asterism_proto.framing import Frame
from tests.kit.fuzzing import campaign, corpus
from tests.kit.fuzzing.guarded import guard_version
from tests.kit.fuzzing.mutations import Mutation
from tests.kit.fuzzing.services import RecordedCall, Services, services


def protect(running: Services, *, before: bool) -> None:
    """Serve every version from arrays next to protected pages."""
    for storaged in running.storageds:
        for local_space in storaged._local_spaces._spaces.values():
            local_space.versions = {
                version_number: guard_version(version, before=before)
                for version_number, version in local_space.versions.items()
            }


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
    arguments = parser.parse_args()
    faulthandler.enable()
    log_file = (arguments.folder / "last-request").open("w")

    def log_request(text: str) -> None:
        log_file.seek(0)
        log_file.truncate()
        log_file.write(text)
        log_file.flush()

    with services(arguments.folder, arguments.storageds) as running:
        if arguments.guard:
            protect(running, before=arguments.guard == "before")
        requests = corpus.read(arguments.folder, arguments.each)

        def send(original: RecordedCall, changed: Mutation) -> object:
            return running.call_storaged(
                original.host,
                original.method,
                Frame(changed.head, changed.arrays),
                arguments.timeout_s,
            )

        before = corpus.response_digests(running, requests)
        outcome = campaign.run(
            requests, send, count=arguments.count, seed=arguments.seed, on_request=log_request
        )
        log_request("none: the campaign is over")
        unchanged = before == corpus.response_digests(running, requests)
    print(
        json.dumps(
            {
                "checked": CHECK_BOUNDS,
                "requests": outcome.requests,
                "faults": [
                    f"{fault_location}: {request}"
                    for fault_location, request in outcome.faults.items()
                ],
                "same": unchanged,
            }
        )
    )
    print(outcome.table(), file=sys.stderr)
    return 0 if unchanged and not outcome.faults else 1


if __name__ == "__main__":
    sys.exit(main())
