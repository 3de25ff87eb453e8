"""Fixtures of all tests, and the rule that a full run skips nothing."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.kit import reaper
from tests.kit.waiting import HANG_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.kit.browser import ContextPool, MonitoredPage

ROOT = Path(__file__).resolve().parents[1]
LONGEST_FIRST = (
    "compose",
    "mutants",
    "distributions",
    "integration",
    "contract",
    "property",
    "structure",
    "unit",
)
"""Folders of tests in the order in which workers take their files.

Short ones are last, so that all workers end at the same time.
"""


def pytest_configure() -> None:
    # First of all: this process's leftovers end with it, even if it is killed.
    reaper.start()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-all",
        action="store_true",
        help="fail where a test would be skipped: nothing that it needs may be missing",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import the tests without garbage collections, and leave what they made out of later ones.

    Nearly all of these objects live as long as the process, and each worker has all of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        ranks = {ROOT / "tests" / folder: rank for rank, folder in enumerate(LONGEST_FIRST)}
        items.sort(
            key=lambda item: next(
                (ranks[folder] for folder in item.path.parents if folder in ranks), 0
            )
        )


def _fail_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"--require-all: {report.nodeid} would be skipped. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and item.config.getoption("--require-all")
    ):
        _fail_skip(report)
    return report


@contextlib.contextmanager
def _sole_collector(collector: pytest.Collector) -> Iterator[None]:
    """Let one process at a time import a test module: one compiles it, others read its bytecode."""
    if not isinstance(collector, pytest.Module):
        yield
        return
    with collector.path.open() as module:
        fcntl.flock(module, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    with _sole_collector(collector):
        report = yield
    if report.skipped and collector.config.getoption("--require-all"):
        _fail_skip(report)
    return report


@pytest.fixture(scope="module", autouse=True)
def forked_task_servers() -> Iterator[None]:
    """Fork the task servers of embedded folders from the zygote, if it runs.

    Executed ones would spend more than a second of a core on their imports.
    """
    fork_server = sys.modules.get("storaged.tasks.fork_server")
    if fork_server is None:
        yield
        return
    from tests.kit.zygote import start_fork_server

    server_class = fork_server.ForkServer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_class, "_execute", start_fork_server(server_class._execute))
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared(root: Path) -> Path:
    """Return the folder next to the checkout with real graphs and DGL reference data."""
    folder = root.parent / "shared"
    if not folder.is_dir():
        pytest.skip(
            "the folder `shared` with real graphs and DGL truth sets is not beside the checkout"
        )
    return folder


@pytest.fixture(scope="session")
def dgl_python(root: Path) -> Path:
    """Return the interpreter of the environment with DGL."""
    python = root / ".venv-dgl/bin/python"
    if not python.exists():
        pytest.skip("there is no environment with real DGL; `make dgl-env` makes it")
    return python


@pytest.fixture(scope="session")
def bolt_python(root: Path) -> Path:
    """Return the interpreter of the environment with GraphBolt."""
    python = root / ".venv-bolt/bin/python"
    if not python.exists():
        pytest.skip("there is no environment with GraphBolt; `make bolt-env` makes it")
    return python


@pytest.fixture(scope="session")
def pyg_python(root: Path) -> Path:
    """Return the interpreter of the environment with PyG."""
    python = root / ".venv-pyg/bin/python"
    if not python.exists():
        pytest.skip("there is no environment with real PyG; `make pyg-env` makes it")
    return python


@pytest.fixture(scope="session")
def tf_python(root: Path) -> Path:
    """Return the interpreter of the environment with TensorFlow."""
    python = root / ".venv-tf/bin/python"
    if not python.exists():
        pytest.skip("there is no environment with real TensorFlow; `make tf-env` makes it")
    return python


@pytest.fixture(scope="session")
def compose_command() -> list[str]:
    """Return the command of compose here, v2 or v1, with a running Docker engine."""
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run(
            [docker, "info"], capture_output=True, timeout=HANG_S, check=False
        ).returncode
    ):
        pytest.skip("no Docker engine answers `docker info`")
    if not subprocess.run(
        [docker, "compose", "version"], capture_output=True, timeout=HANG_S, check=False
    ).returncode:
        return [docker, "compose"]
    legacy = shutil.which("docker-compose")
    if legacy is None:
        pytest.skip("neither `docker compose` nor `docker-compose` is installed")
    return [legacy]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a headless Chromium for each module.

    It is closed after the module, because an event loop runs in this thread while it is open, and
    no other loop can.
    """
    kit = pytest.importorskip(
        "tests.kit.browser",
        reason="there is no playwright, which drives the browser; it is in the extra `dev`",
    )
    path = kit.browser_path()
    if path is None:
        pytest.skip("there is no Chromium here; Debian's package is `chromium-headless-shell`")
    with kit.chromium(path) as chromium:
        yield chromium


@pytest.fixture(scope="module")
def contexts(browser: Browser) -> ContextPool:
    """Return the contexts in which the pages of a module are opened."""
    from tests.kit.browser import ContextPool

    return ContextPool(browser)


@pytest.fixture
def page_of(contexts: ContextPool) -> Iterator[Callable[..., MonitoredPage]]:
    """Return a function that opens pages.

    Each page must have no problems and request only its own host.
    """
    open_pages = []

    def open_page(address: str, **options: Any) -> MonitoredPage:
        manager = contexts.monitored_page(address, **options)
        open_pages.append((manager, manager.__enter__()))
        return open_pages[-1][1]

    yield open_page
    for manager, watch in open_pages:
        complaints, foreign = list(watch.complaints), watch.foreign_requests
        manager.__exit__(None, None, None)
        assert complaints == []
        assert foreign == []
