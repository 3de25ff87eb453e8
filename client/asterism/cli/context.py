"""Context of a command: service or folder, timeout and output."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from asterism.cli.lean_imports import NUMBA_EXTRAS, packages_hidden
from asterism.cli.output import Output
from asterism.transport.credentials import CredentialFile
from asterism_io.tls_options import TlsOptions
from asterism_proto.errors import AsterismError, Conflict, InvalidRequest

if TYPE_CHECKING:
    from asterism import Client

DEFAULT_ADDRESS = "localhost:9669"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """Values of the global options, which every command receives."""

    address: str | None
    """Address of graphd: ``host:port``, several separated by commas."""
    path: Path | None
    """Folder of an embedded graph, instead of an address."""
    timeout_s: float
    output: Output
    tls: TlsOptions | None = None
    """TLS of the connection to the address; None: without TLS."""
    tls_arguments: TlsOptions | None = None
    """The same from the command line only, without the environment."""
    api_key: CredentialFile | None = None
    """File with the API key or token of every call; None: as the environment says."""

    def command_line(self, arguments: str) -> str:
        """Return a command line for the same service, for messages."""
        options: list[str] = []
        if self.path is not None:
            options = ["--path", str(self.path)]
        elif self.address is not None:
            options = ["--address", self.address]
        return " ".join(["asterism", *map(shlex.quote, options), arguments])

    @contextmanager
    def client(
        self,
        *,
        allow_read_only: bool = False,
        create: bool = False,
        adopting: bool = False,
        fork_tasks: bool = False,
    ) -> Iterator[Client]:
        """Yield a client of the address or of the embedded graph, until the block ends.

        With ``allow_read_only`` the published versions of a folder are opened if another process
        has it open. With ``create`` a missing folder is created; otherwise it is an error, because
        the path is probably mistyped. With ``adopting`` a folder is opened although its catalog is
        an older copy. With ``fork_tasks`` the tasks of a folder start sooner.
        """
        if self.path is not None:
            if self.address is not None:
                raise InvalidRequest(
                    f"--path={str(self.path)!r}: expected either --address or --path, found both; "
                    f"remove --address={self.address!r}"
                )
            with self._open_embedded(
                self.path,
                allow_read_only=allow_read_only,
                create=create,
                adopting=adopting,
                fork_tasks=fork_tasks,
            ) as client:
                yield client
        else:
            with (
                self.output.activity("starting"),
                warnings.catch_warnings(record=True) as caught,
            ):
                import asterism

                warnings.simplefilter("always")
                client = asterism.connect(
                    self.address or DEFAULT_ADDRESS,
                    timeout_s=self.timeout_s,
                    tls=self.tls or False,
                    api_key=self.api_key,
                )
            address = self.address or DEFAULT_ADDRESS
            with client, self.output.activity(f"waiting for {address}"):
                for warning in caught:
                    self.output.print_note(f"warning: {warning.message}")
                yield client

    def _open_embedded(
        self,
        path: Path,
        *,
        allow_read_only: bool,
        create: bool,
        adopting: bool,
        fork_tasks: bool,
    ) -> Client:
        import asterism
        from asterism.transport.embedded import preload, show_compilation

        with self.output.activity(f"opening {path}"):
            show_compilation(self.output.show_activity)
            with packages_hidden(*NUMBA_EXTRAS):
                preload(fork_tasks=fork_tasks)
        # The activity has ended: its thread would keep the service from forking.
        opening = nullcontext() if fork_tasks else self.output.activity(f"opening {path}")
        try:
            with opening:
                return asterism.open(
                    path,
                    mode="w" if create else "r+",
                    adopting=adopting,
                    fork_tasks=fork_tasks,
                )
        except Conflict as conflict:
            if not allow_read_only:
                raise
            try:
                client = asterism.open(path, mode="r")
            except AsterismError:
                # Nothing is published there: report the process that has the folder open.
                raise conflict from None
            self.output.print_note(
                f"note: {path} is open in another process; this is what it had published by now"
            )
            return client


def command_context(context: typer.Context) -> CommandContext:
    """Return the context that the global options describe."""
    root = context.find_root().obj
    assert isinstance(root, CommandContext)
    return root
