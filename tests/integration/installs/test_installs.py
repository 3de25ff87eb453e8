"""Both distributions, built and installed into new environments: client only, and all.

Nothing is downloaded: the new environments link the dependencies of the environment that runs the
tests.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.kit.waiting import HANG_S

CLIENT_PACKAGES = {"asterism", "asterism_proto", "asterism_model", "asterism_io"}
SERVER_PACKAGES = {
    "asterism_graphkit",
    "asterism_access",
    "asterism_daemonkit",
    "metad",
    "storaged",
    "graphd",
    "asterism_standalone",
}
CLIENT_DEPENDENCIES = {"numpy", "grpcio", "protobuf"}
DAEMONS = ("metad", "storaged", "graphd")


def run(*command: object, cwd: Path, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command that sees only installed modules, not those of the checkout."""
    completed = subprocess.run(
        ["env", "-u", "PYTHONPATH", *map(str, command)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert may_fail or completed.returncode == 0, completed.stdout + completed.stderr
    return completed


def build(source: Path, target: str, out: Path, *variables: str) -> Path:
    """Build the distribution of a folder, as a ``wheel`` or ``sdist``."""
    command = (sys.executable, "-m", "hatchling", "build", "-t", target, "-d", out)
    run("env", *variables, *command, cwd=source)
    (built,) = out.iterdir()
    return built


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def links_of(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", text)


def top_level(names: Iterable[str]) -> set[str]:
    return {name.partition("/")[0] for name in names if ".dist-info/" not in name}


def contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info.CRC for info in archive.infolist()}


def requirements(metadata: Iterable[str]) -> list[Requirement]:
    """Return the requirements that do not belong to an extra."""
    parsed = [Requirement(line) for line in metadata]
    return [r for r in parsed if r.marker is None or r.marker.evaluate({"extra": ""})]


def with_dependencies(names: Iterable[str]) -> set[str]:
    """Return the names of distributions and of all their dependencies."""
    found: set[str] = set()
    remaining = list(names)
    while remaining:
        name = canonicalize_name(remaining.pop())
        if name not in found:
            found.add(name)
            needed = requirements(distribution(name).requires or ())
            remaining += [requirement.name for requirement in needed]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheels:
    client: Path
    server: Path


class Environment:
    """A virtual environment without pip; the pip of the tests' environment installs into it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
        purelib = sysconfig.get_path("purelib", "venv", vars={"base": str(folder)})
        self.site_packages = Path(purelib)

    def link(self, names: Iterable[str]) -> None:
        """Link the files of distributions, as if they were installed here."""
        for name in names:
            installed = distribution(name)
            for file in installed.files or ():
                if ".." not in file.parts and "__pycache__" not in file.parts:
                    target = self.site_packages / file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.symlink_to(str(installed.locate_file(file)))

    def add_outer_packages(self) -> None:
        """Make all other packages of the environment that runs the tests importable.

        Path files of that environment, including those of editable installs, are not read.
        """
        outer = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
        (self.site_packages / "outer.pth").write_text("".join(f"{path}\n" for path in outer))

    def pip(self, *arguments: object) -> str:
        return run(
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--python",
            self.bin / "python",
            *arguments,
            cwd=self.folder,
        ).stdout

    def install(self, *arguments: object) -> None:
        self.pip("install", "--quiet", "--no-index", "--no-compile", *arguments)

    def python(self, *arguments: object, may_fail: bool = False) -> str:
        """Run the interpreter, and return its output of both streams."""
        completed = run(self.bin / "python", *arguments, cwd=self.folder, may_fail=may_fail)
        return completed.stdout + completed.stderr

    def files_of(self, modules: Iterable[str]) -> list[Path]:
        program = "import sys, importlib\nfor name in sys.argv[1:]:\n"
        program += "    print(importlib.import_module(name).__file__)\n"
        return [Path(line) for line in self.python("-c", program, *modules).splitlines()]


@pytest.fixture(scope="module")
def wheels(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return Wheels(
        client=build(root, "wheel", tmp_path_factory.mktemp("client")),
        server=build(root / "services", "wheel", tmp_path_factory.mktemp("server")),
    )


@pytest.fixture(scope="module")
def client_alone(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("alone") / "venv")
    environment.link(with_dependencies(CLIENT_DEPENDENCIES))
    environment.install(wheels.client)
    return environment


@pytest.fixture(scope="module")
def both(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("both") / "venv")
    environment.add_outer_packages()
    environment.install(f"{wheels.client}[all]", wheels.server)
    return environment


def assert_daemons_show_help(environment: Environment) -> None:
    for daemon in DAEMONS:
        assert "--listen" in environment.python("-m", daemon, "--help")


def test_wheels_have_their_packages_and_no_more(wheels: Wheels) -> None:
    assert top_level(contents(wheels.client)) == CLIENT_PACKAGES
    assert top_level(contents(wheels.server)) == SERVER_PACKAGES


@pytest.mark.parametrize(
    ("wheel", "folders"), [("client", ("client", "proto")), ("server", ("services",))]
)
def test_wheels_have_every_file_of_their_packages(
    root: Path, wheels: Wheels, wheel: str, folders: tuple[str, ...]
) -> None:
    expected = set()
    for folder in folders:
        command = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*/*")
        listed = run(*command, cwd=root / folder).stdout.split("\0")
        expected |= {name for name in listed if name and (root / folder / name).is_file()}
    found = {name for name in contents(getattr(wheels, wheel)) if ".dist-info/" not in name}
    assert found == expected


@pytest.mark.parametrize(("wheel", "folder"), [("client", "."), ("server", "services")])
def test_a_source_distribution_builds_the_same_wheel(
    root: Path, wheels: Wheels, tmp_path: Path, wheel: str, folder: str
) -> None:
    source = build(root / folder, "sdist", tmp_path / "sdist")
    (tmp_path / "unpacked").mkdir()
    run("tar", "-xzf", source, "-C", tmp_path / "unpacked", cwd=tmp_path)
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    rebuilt = build(unpacked, "wheel", tmp_path / "wheel")
    assert rebuilt.name == getattr(wheels, wheel).name
    assert contents(rebuilt) == contents(getattr(wheels, wheel))


def test_the_client_needs_three_distributions(wheels: Wheels) -> None:
    needed = requirements(metadata_of(wheels.client).get_all("Requires-Dist", []))
    assert {requirement.name for requirement in needed} == CLIENT_DEPENDENCIES


def test_a_package_index_shows_no_link_that_leads_nowhere(root: Path, wheels: Wheels) -> None:
    metadata = metadata_of(wheels.client)
    shown = str(metadata.get_payload())
    assert not any(link.startswith(("docs/", "SECURITY")) for link in links_of(shown))
    assert "| Quickstart | install, load, sample and train" in shown
    assert "![" not in shown
    assert metadata.get_all("Project-URL") is None


def test_links_of_a_release_lead_to_its_repository(root: Path, tmp_path: Path) -> None:
    address = "https://example.org/asterism"
    metadata = metadata_of(build(root, "wheel", tmp_path, f"ASTERISM_REPOSITORY={address}"))
    tag = f"v{metadata['Version']}"
    shown = str(metadata.get_payload())
    assert f"[Quickstart]({address}/blob/{tag}/docs/quickstart.md)" in shown
    assert f"({address}/raw/{tag}/docs/pictures/overview.svg)" in shown
    for link in links_of((root / "README.md").read_text()):
        assert link.startswith("https:") or f"/{tag}/{link})" in shown, link
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert {*urls} == {"Source", "Documentation", "Changelog", "Issues", "Security"}
    assert all(url.startswith(address) for url in urls.values())
    for url in urls.values():
        file = url.partition("/blob/main/")[2]
        assert not file or (root / file).is_file()


def test_the_address_of_a_repository_is_checked(root: Path, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    variables = ("ASTERISM_REPOSITORY=example.org/asterism",)
    failed = run("env", *variables, *command, cwd=root, may_fail=True)
    assert failed.returncode
    assert "'example.org/asterism': expected an address of https://" in failed.stderr


def test_the_client_installs_alone(client_alone: Environment) -> None:
    client_alone.pip("check")
    listed = json.loads(client_alone.pip("list", "--format", "json"))
    names = {canonicalize_name(row["name"]) for row in listed}
    assert names == with_dependencies(CLIENT_DEPENDENCIES) | {"asterism-graph"}
    modules = ("asterism.graph", "asterism.euler", "asterism.objects", "asterism.verification")
    assert all(
        file.is_relative_to(client_alone.site_packages) for file in client_alone.files_of(modules)
    )
    client_alone.python(
        "-c", "import asterism; asterism.connect('127.0.0.1:1').close(); print(asterism.Schema)"
    )


@pytest.mark.parametrize(
    ("program", "extra"),
    [
        ("asterism.open('graphs')", "server"),
        ("asterism.connect('127.0.0.1:1', direct=True)", "server"),
        ("import asterism.ingest", "ingest"),
        ("asterism.pglbox", "ingest"),
        ("import asterism.export", "export"),
        ("import asterism.aio", "aio"),
    ],
)
def test_a_missing_part_names_its_install_line(
    client_alone: Environment, program: str, extra: str
) -> None:
    out = client_alone.python("-c", f"import asterism\n{program}", may_fail=True)
    last = out.splitlines()[-1]
    assert last.startswith("asterism.extras.MissingExtra: ")
    assert f"pip install 'asterism-graph[{extra}]'" in last


def test_the_command_without_its_extra_says_so(client_alone: Environment) -> None:
    completed = run(client_alone.bin / "asterism", "--help", cwd=client_alone.folder, may_fail=True)
    (line,) = completed.stderr.splitlines()
    assert completed.returncode == 1
    assert "pip install 'asterism-graph[cli]'" in line


def test_both_install_from_wheels(both: Environment) -> None:
    both.pip("check")
    packages = CLIENT_PACKAGES | SERVER_PACKAGES
    assert all(file.is_relative_to(both.site_packages) for file in both.files_of(packages))
    assert_daemons_show_help(both)
    program = "from importlib.metadata import version; print(version('asterism-graph-server'))"
    version = both.python("-c", program)
    assert run(both.bin / "asterism", "--version", cwd=both.folder).stdout == f"asterism {version}"


def test_the_command_without_the_server_says_so(both: Environment) -> None:
    program = (
        "import sys; sys.modules['asterism_standalone'] = None\n"
        "from asterism import cli; cli.main(['serve', 'graphs'])"
    )
    (line,) = both.python("-c", program, may_fail=True).splitlines()
    assert line.startswith("asterism: asterism serve: ")
    assert "pip install 'asterism-graph[server]'" in line


def test_both_install_editable(root: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.add_outer_packages()
    environment.install("--no-build-isolation", "-e", f"{root}[all]", "-e", root / "services")
    environment.pip("check")
    for packages, folders in (
        (CLIENT_PACKAGES, ("client", "proto")),
        (SERVER_PACKAGES, ("services",)),
    ):
        for file in environment.files_of(packages):
            assert any(file.is_relative_to(root / folder) for folder in folders), file
    assert_daemons_show_help(environment)
