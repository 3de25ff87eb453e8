"""Compilation in this process: which kernel is being compiled, and how many have been.

Loading a kernel from the cache takes milliseconds and does not appear here.
"""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[], None]
"""Function called after each start and each end of a compilation.

It runs in the thread that compiles, and must not raise.
"""


class CompileActivity:
    """Kernels that this process compiles, or waits for while another process compiles them.

    A kernel needs the functions that are inlined into it, so compilations are nested. Numba's
    compiler lock admits one thread at a time, which makes calls of `begin` and `end` sequential.

    Attributes
    ----------
    listeners : list of Listener
    compiled : int
        Number of kernels that were missing from the cache and are now available.
    """

    def __init__(self) -> None:
        self._kernels: list[str] = []
        self.listeners: list[Listener] = []
        self.compiled = 0

    @property
    def current(self) -> str:
        """The kernel that was started last; empty if none is being compiled."""
        kernels = list(self._kernels)
        return kernels[-1] if kernels else ""

    def describe(self) -> str:
        """Return what a service waits for that starts when all kernels are available."""
        kernel = self.current
        if not kernel:
            return "kernels are being loaded"
        return f"kernels are being compiled: {self.compiled} so far, now {kernel}"

    def begin(self, kernel: str) -> None:
        """Note that a kernel is missing from the cache."""
        self._kernels.append(kernel)
        self._notify()

    def end(self, kernel: str) -> None:
        """Note that a kernel is available, or that its compilation failed."""
        self._kernels.remove(kernel)
        self.compiled += 1
        self._notify()

    def _notify(self) -> None:
        for listener in list(self.listeners):
            listener()


ACTIVITY = CompileActivity()
"""The compilations of this process."""
