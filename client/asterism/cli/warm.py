"""`asterism warm`: compile the kernels of the service for this machine, with progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.context import command_context
from asterism.cli.help_text import examples
from asterism.cli.output import Output
from asterism.extras import required

if TYPE_CHECKING:
    from asterism_standalone.kernel_compiler import CompileProgress

EXAMPLES = examples("asterism warm --jobs 4")
_NOTE_INTERVAL_S = 2.0
"""Seconds between two lines of progress where standard error is no terminal."""


def warm(
    context: typer.Context,
    *,
    jobs: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            max=64,
            help="Processes that compile. Default: one for each core, at most 8.",
            show_default=False,
        ),
    ] = 0,
) -> None:
    """Compile all kernels for this machine now, so that later commands start at once."""
    output = command_context(context).output
    started = time.monotonic()
    kernels = compile_kernels(output, feature="asterism warm", jobs=jobs)
    seconds = time.monotonic() - started
    output.result(
        {"kernels": kernels, "seconds": seconds},
        lambda: (
            f"compiled {kernels} kernels in {seconds:.0f} s"
            if kernels
            else "all kernels are compiled"
        ),
    )


def compile_kernels(output: Output, *, feature: str, jobs: int = 0) -> int:
    """Compile the missing kernels, with progress on stderr, and return their number.

    ``feature`` needs the server, and is named in the error if it is not installed.
    """
    with output.activity("starting"), required("server", feature):
        from asterism_standalone.kernel_compiler import KernelCompiler, is_cache_complete
    if is_cache_complete():
        return 0
    output.print_note("compiling kernels, once for this machine and release")
    with KernelCompiler(jobs) as compiler, _progress_line(output) as show:
        compiler.wait(show)
        return compiler.progress().kernels


@contextmanager
def _progress_line(output: Output) -> Iterator[Callable[[CompileProgress], None]]:
    """Yield a function that shows progress: on a terminal in one line, else as notes."""
    from rich.console import Console

    console, started = Console(stderr=True, highlight=False), time.monotonic()
    if console.is_terminal:
        with console.status("") as status:
            yield lambda progress: status.update(_describe(progress, time.monotonic() - started))
        return
    noted = started

    def note(progress: CompileProgress) -> None:
        nonlocal noted
        if time.monotonic() - noted >= _NOTE_INTERVAL_S:
            noted = time.monotonic()
            output.print_note(_describe(progress, noted - started))

    yield note


def _describe(progress: CompileProgress, seconds: float) -> str:
    """Return the progress of a compilation as a line."""
    now = ", ".join(kernel.rpartition(".")[2] for kernel in progress.current)
    return (
        f"{progress.steps_done} of {progress.steps_total} groups, {progress.kernels} kernels "
        f"in {seconds:.0f} s{f', now {now}' if now else ''}"
    )
