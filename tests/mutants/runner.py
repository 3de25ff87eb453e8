"""Runner of mutants: each in a forked child of a process that has imported their modules.

A child plants its mutant (`tests.mutants.planting`) and runs the one check or test that must reject
it. Of the kernels that a check calls, only those that contain the mutant are interpreted
(`tests.mutants.interpreting`). Processes that a test starts plant the mutant too, as directed by
their environment."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import numpy as np
import pytest

from tests.kit.waiting import HANG_S
from tests.mutants import planting

if TYPE_CHECKING:
    from tests.mutants.mutant import Mutant

SCALE = 0.05
"""Fraction of the sample sizes of `tests.distributions` that suffices for these mutants."""
_SOURCE_FOLDERS = ("services", "client", "proto")
_IMPORTS_OF_TESTS = ("asterism_standalone.app", "asterism.saint")
"""Modules that most tests of services import, imported once for all of them."""
_CACHING = ("tests.distributions", "tests.kit", "storaged", "graphd", "asterism_model")
"""Prefixes of modules with caches that may hold what a mutant changes."""
_UNIT_TESTS = "tests/unit/"
"""Prefix of tests that start no daemons."""
_PYTEST_OPTIONS = (
    *("-vv", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist"),
    # The imports above have already imported these plugins.
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
)
T = TypeVar("T")
Items: TypeAlias = Sequence[pytest.Item]


class ChildFailed(Exception):
    """A child returned no result: it raised, was killed, or took too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Outcome of one sampler, or one test, with or without a mutant."""

    rejected_by: str = ""
    """Name of the check or test that rejected it; empty if all accepted it."""
    reason: str = ""


def prepare_checks() -> None:
    """Import the checks, for children to run them."""
    _add_source_folders()
    # Interpreted kernels wrap around silently. Set once for the process: each call of a step would
    # otherwise spend most of its time on setting it.
    np.seterr(over="ignore")
    warnings.simplefilter("ignore", RuntimeWarning)  # threads begin with NumPy's own setting
    importlib.import_module("tests.distributions.checks")


def load_kernels(names: Collection[str]) -> Verdict:
    """Run checks in this process, so that its children have the compiled kernels of these checks.

    Nothing else of them is left: children compute again what checks and modules have cached.

    Returns
    -------
    Verdict
        Whether the checks accept the sampler with all kernels compiled.
    """
    verdict = run_checks(names)
    for name, module in list(sys.modules.items()):
        if name.startswith(_CACHING):
            for value in vars(module).values():
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()
    importlib.import_module("tests.mutants.interpreting").prepare()
    planting.needs_interpreted_kernels("")  # reads the sources of kernels
    gc.collect()
    gc.freeze()  # a collection in a child then copies none of these objects
    return verdict


def prepare_tests(node_ids: Iterable[str]) -> None:
    """Import what tests of services import; start the zygote if one starts daemons."""
    _add_source_folders()
    for name in _IMPORTS_OF_TESTS:
        importlib.import_module(name)
    importlib.import_module("tests.kit.reaper").start()
    if not all(node_id.startswith(_UNIT_TESTS) for node_id in node_ids):
        importlib.import_module("tests.kit.zygote").ZYGOTE.share()
    planting.needs_interpreted_kernels("")  # reads the sources of kernels


def _add_source_folders() -> None:
    root = planting.ROOT
    sys.path[:0] = [str(root), *(str(root / folder) for folder in _SOURCE_FOLDERS)]


def call_in_child(function: Callable[[], T], timeout_s: float = HANG_S) -> T:
    """Return the result of a function in a fork of this process; it must be picklable.

    Raises
    ------
    ChildFailed
    """
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            signal.alarm(int(timeout_s))
            try:
                outcome: tuple[bool, object] = (True, function())
            except BaseException:
                outcome = False, traceback.format_exc()
            with os.fdopen(write, "wb") as channel:
                pickle.dump(outcome, channel)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as channel:
        data = channel.read()
    _, status = os.waitpid(pid, 0)
    if not data:
        raise ChildFailed(f"the child ended with {os.waitstatus_to_exitcode(status)}")
    has_result, result = pickle.loads(data)
    if not has_result:
        raise ChildFailed(result)
    return cast(T, result)


def run_checks(names: Collection[str] = ()) -> Verdict:
    """Return the first rejection by checks with these names; by any check if names is empty."""
    checks = importlib.import_module("tests.distributions.checks")
    AsterismError = importlib.import_module("asterism_proto.errors").AsterismError
    for check in checks.CHECKS:
        if names and check.__name__ not in names:
            continue
        try:
            check(SCALE)
        except checks.Rejected as rejection:
            return Verdict(rejected_by=check.__name__, reason=str(rejection))
        except AsterismError as error:
            # A host that refuses a request of another host has detected the fault too.
            reason = f"{type(error).__name__}: {error.message}"
            return Verdict(rejected_by=check.__name__, reason=reason)
    return Verdict()


def run_with_items(
    node_ids: Iterable[str], function: Callable[[Mapping[str, Items]], None]
) -> None:
    """Call a function with the collected tests, by node id, in one session of pytest.

    A test with parameters has several items. Children that it forks need not read the configuration
    and the tests again (`run_test`).

    Raises
    ------
    RuntimeError
        If a test cannot be collected.
    """
    paths = dict.fromkeys(str(planting.ROOT / node_id) for node_id in node_ids)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = pytest.main([*_PYTEST_OPTIONS, *paths], plugins=[_Loop(function)])
    if status != pytest.ExitCode.OK:
        raise RuntimeError(output.getvalue())


class _Loop:
    """Pytest plugin that calls a function in place of the tests."""

    def __init__(self, function: Callable[[Mapping[str, Items]], None]) -> None:
        self._function = function

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("a test cannot be collected")
        gc.collect()
        gc.freeze()  # a collection in a child then copies none of these objects
        items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            for node_id in {item.nodeid, item.nodeid.partition("[")[0]}:
                items.setdefault(node_id, []).append(item)
        self._function(items)
        return True


def run_test(items: Items) -> Verdict:
    """Return whether an item of a test fails in its body; this process can run no other test.

    Raises
    ------
    RuntimeError
        If it fails elsewhere or is skipped: this is not a rejection.
    """
    listener = _TestListener()
    hooks = items[0].config.hook
    items[0].config.pluginmanager.register(listener)
    for item, next_item in zip(items, [*items[1:], None], strict=True):
        hooks.pytest_runtest_protocol(item=item, nextitem=next_item)
    if listener.fault:
        raise RuntimeError(listener.fault)
    if listener.failure is None:
        return Verdict()
    return Verdict(rejected_by=items[0].nodeid, reason=listener.failure)


class _TestListener:
    """Pytest plugin that records failures."""

    def __init__(self) -> None:
        self.failure: str | None = None
        """Text of the first failure in a test's body."""
        self.fault = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped or (report.failed and report.when != "call"):
            self.fault = self.fault or f"{report.nodeid}, {report.when}: {report.longreprtext}"
        elif report.failed and self.failure is None:
            self.failure = report.longreprtext


def _run_planted(mutant: Mutant, items: Items) -> Verdict:
    """Plant a mutant in this process, and run the check or test that must reject it."""
    if not items:
        planting.plant([mutant], interpreting=True)
        return run_checks([mutant.check])
    # Child processes inherit this.
    os.environ.update(planting.environment_of([mutant.name]))  # noqa: TID251
    planting.plant([mutant])
    return run_test(items)


def _run_every_check(mutant: Mutant) -> Verdict:
    planting.plant([mutant], interpreting=True)
    return run_checks()


def _run_interpreted(check: str, mutants: Sequence[Mutant]) -> Verdict:
    """Run a check without mutants, with the kernels interpreted that they change."""
    planting.interpret_as_with(mutants)
    return run_checks([check])


def evaluate_mutant(mutant: Mutant, items: Items = ()) -> tuple[bool, str]:
    """Return whether a mutant is rejected by its check or test, and a text for the report.

    If its check accepts it, the text names the check that rejects it. ``items`` are its test's.
    """
    planting.check_mutants([mutant])
    try:
        verdict = call_in_child(partial(_run_planted, mutant, items))
        if verdict.rejected_by and mutant.reason in verdict.reason:
            return True, f"rejected by {verdict.rejected_by}: {verdict.reason}"
        if mutant.test:
            return False, f"not noticed by {mutant.test}: {verdict.reason or 'it passes'}"
        verdict = call_in_child(partial(_run_every_check, mutant))
    except ChildFailed as failure:
        return False, f"no verdict: {failure}"
    return False, (
        f"accepted by {mutant.check or '(no check)'}, rejected by "
        f"{verdict.rejected_by or '(none)'}: {verdict.reason}"
    )


def evaluate_sampler(mutants: Sequence[Mutant]) -> tuple[bool, str]:
    """Return whether the checks of mutants accept the unchanged sampler, and a text.

    A check runs with the kernels interpreted that any of its mutants changes.
    """
    mutants_by_check: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        if planting.needs_interpreted_kernels(mutant.module):
            mutants_by_check.setdefault(mutant.check, []).append(mutant)
    for check, own_mutants in mutants_by_check.items():
        try:
            verdict = call_in_child(partial(_run_interpreted, check, own_mutants))
        except ChildFailed as failure:
            return False, f"no verdict: {failure}"
        if verdict.rejected_by:
            return False, f"rejected by {verdict.rejected_by}: {verdict.reason}"
    return True, "accepted"
