"""One run of the command: whom it asks, how long it waits, and how it prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from asterism.cli.output import Output
from asterism_proto.errors import AsterismError, Conflict, InvalidRequest

if TYPE_CHECKING:
    from asterism import Client

DEFAULT_ADDRESS = "localhost:9669"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The global options, as every command gets them."""

    address: str | None
    """Of graphd, ``host:port`` or several with commas."""
    path: Path | None
    """The folder of an embedded graph, instead of an address."""
    timeout_s: float
    output: Output

    @contextmanager
    def client(
        self, *, allow_read_only: bool = False, create: bool = False, adopting: bool = False
    ) -> Iterator[Client]:
        """A client of the address, or of the embedded graph, for as long as the block runs.

        A command that is only ``allow_read_only`` does with what is published where another process
        has the folder open. Only one that is ``create`` a space makes the folder: of any other its
        name is a slip where it is not there.

        A command that is ``adopting`` opens a folder whose catalog is an older copy.
        """
        import asterism

        if self.path is not None:
            if self.address is not None:
                raise InvalidRequest(
                    f"both --address {self.address} and --path {self.path}; say which of the two"
                )
            with self._open_embedded(
                self.path, allow_read_only=allow_read_only, create=create, adopting=adopting
            ) as client:
                yield client
        else:
            with asterism.connect(
                self.address or DEFAULT_ADDRESS, timeout_s=self.timeout_s
            ) as client:
                yield client

    def _open_embedded(
        self, path: Path, *, allow_read_only: bool, create: bool, adopting: bool
    ) -> Client:
        import asterism

        try:
            mode = "w" if create else "r+"
            return (
                asterism.open(path, mode=mode, adopting=True)
                if adopting
                else asterism.open(path, mode=mode)
            )
        except Conflict as conflict:
            if not allow_read_only:
                raise
            try:
                client = asterism.open(path, mode="r")
            except AsterismError:
                # nothing is published there: what matters is who has the folder
                raise conflict from None
            self.output.print_note(
                f"note: {path} is open in another process; this is what it had published by now"
            )
            return client


def command_context(context: typer.Context) -> CommandContext:
    """The session that the global options made."""
    session = context.find_root().obj
    assert isinstance(session, CommandContext)
    return session
