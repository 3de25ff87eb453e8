"""Interruption from the keyboard: what continues without the command, and how to resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CommandInterrupted(Exception):
    """Interruption from the keyboard, with advice for the user as its message."""


@contextmanager
def advice_on_interrupt(advice: Callable[[], str]) -> Iterator[None]:
    """Convert an interruption within the block into `CommandInterrupted`.

    Parameters
    ----------
    advice : callable
        Returns what continues and how to resume; it is called after the interruption.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise CommandInterrupted(advice()) from None
