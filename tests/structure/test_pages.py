"""Tests of documentation pages and the site.

Code blocks state how they run. The site builds with valid links, has every public name, and
requests no other host.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.kit import benchmark_chart, pages
from tests.kit.waiting import HANG_S

import asterism
from asterism.aio import async_wrapper
from asterism_proto import errors

PAGES = [pytest.param(page, id=str(page.relative_to(pages.ROOT))) for page in pages.all_pages()]
MODULES = [
    f"asterism.{name}"
    for name in (
        "aio",
        "backup",
        "euler",
        "export",
        "ingest",
        "objects",
        "ops",
        "pglbox",
        "records",
        "saint",
        "verification",
    )
]
FRAMEWORKS = {
    "asterism.torch",
    "asterism.pyg",
    "asterism.dgl",
    "asterism.graphbolt",
    "asterism.tensorflow",
}
"""Modules that need their frameworks to be imported; their files are parsed."""


@pytest.mark.parametrize("page", PAGES)
def test_every_code_block_has_a_known_kind(page: Path) -> None:
    assert [
        f"line {block.line}: {block.kind!r}"
        for block in pages.blocks(page)
        if block.kind not in pages.KINDS
    ] == []
    assert page.read_text().count("\n```") % 2 == 0


def test_only_listed_python_blocks_do_not_run() -> None:
    shown = [
        f"{page.name}: {block.code.split('(')[0]}"
        for page in pages.all_pages()
        for block in pages.blocks(page)
        if block.kind == "python shown" and not pages.is_translation(page)
    ]
    assert shown == ["export.md: dgl.distributed.initialize"]


def test_files_that_a_page_names_exist(root: Path) -> None:
    named = {
        f"{page.name}: {name}"
        for page in pages.all_pages()
        for name in re.findall(r"`((?:tests|examples)/[\w/.-]+\.\w+)`", page.read_text())
        if not (root / name).exists()
    }
    assert named == set()


def test_page_of_distributions_names_checks_that_exist(root: Path) -> None:
    page = (root / "docs/distributions.md").read_text()
    table = page[page.index("## The tests") : page.index("## The self-test")]
    named = set(re.findall(r"`(\w+\.py)`", table))
    folder = root / "tests/distributions/checks"
    modules = {path.name for path in folder.glob("*.py")} - {"__init__.py", "basis.py", "hosts.py"}
    assert named == modules


class _Links(HTMLParser):
    """URLs that the browser fetches for a page, and its pictures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            self.fetched.append(attributes.get("src") or "")
        elif tag == "link" and attributes.get("rel") != "canonical":
            self.fetched.append(attributes.get("href") or "")


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    completed = subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return folder


def test_no_page_fetches_anything_from_another_host(site: Path) -> None:
    built = sorted(site.rglob("*.html"))
    assert len(built) > 25
    foreign = {
        f"{page.name}: {url}"
        for page in built
        for url in _Links(page.read_text()).fetched
        if url.startswith(("http:", "https:", "//"))
    }
    assert foreign == set()
    sheets = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheets) == []


def test_every_page_shows_the_version(site: Path) -> None:
    version = f"Asterism {asterism.__version__}"
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    assert [page for page in pages if version not in page.read_text()] == []


def test_chinese_pages_state_their_language(site: Path) -> None:
    stated = [
        page.name for page in site.rglob("*.html") if '<html lang="zh-CN"' in page.read_text()
    ]
    assert sorted(stated) == sorted(page.name for page in site.rglob("*.zh.html"))
    assert "quickstart.zh.html" in stated


def test_chinese_sentences_have_no_line_breaks(root: Path, site: Path) -> None:
    line_break = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]\n *[\u4e00-\u9fff]")
    assert line_break.search((root / "docs/quickstart.zh.md").read_text())
    for page in site.rglob("*.zh.html"):
        assert line_break.findall(page.read_text()) == [], page.name


def test_a_search_for_speed_leads_to_the_benchmarks(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text())
    # In the ranking, a term in a title outweighs any number in texts.
    titles = [entry for entry in index["docs"] if "faster" in entry["title"].lower()]
    assert [entry["location"].partition("#")[0] for entry in titles] == ["benchmarks.html"]
    assert "faster than DGL" in titles[0]["title"]


def test_every_picture_has_a_dark_variant(root: Path, site: Path) -> None:
    pictures = sorted((root / "docs/pictures").glob("*.svg"))
    assert [picture.name for picture in pictures] == [
        "architecture.svg",
        "benchmarks.svg",
        "draw.svg",
        "overview.svg",
        "tables.svg",
        "threats.svg",
        "versions.svg",
    ]
    shown = "".join(page.read_text() for page in site.glob("*.html"))
    for picture in pictures:
        text = picture.read_text()
        assert "prefers-color-scheme: dark" in text
        assert "<title" in text
        assert "<desc" in text
        assert f"pictures/{picture.name}" in shown


def test_the_benchmark_chart_shows_the_first_table() -> None:
    bars = benchmark_chart.read_bars(benchmark_chart.PAGE.read_text())
    assert benchmark_chart.PICTURE.read_text() == benchmark_chart.draw(bars), (
        "draw it again: python -m tests.kit.benchmark_chart"
    )


def reference_names(site: Path) -> set[str]:
    """Return the names in the reference, from its inventory."""
    raw = (site / "objects.inv").read_bytes()
    head = b"# The remainder of this file is compressed using zlib.\n"
    lines = zlib.decompress(raw[raw.index(head) + len(head) :]).decode().splitlines()
    return {line.split(" ")[0] for line in lines}


def public_names() -> set[str]:
    names = {
        f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__
    }
    for module in FRAMEWORKS:
        path = pages.ROOT / "client" / module.replace(".", "/")
        text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
        listed = re.search(r"__all__ = \[(.*?)\]", text, re.DOTALL)
        assert listed is not None
        names |= {f"{module}.{name}" for name in re.findall(r'"(\w+)"', listed[1])}
    for name in asterism.__all__:
        value = getattr(asterism, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            is_own = inspect.isfunction(value) or value.__module__.startswith("asterism.")
            names.add(f"asterism.{name}" if is_own else f"{value.__module__}.{name}")
    for cls in (asterism.Client, asterism.Graph, asterism.Load):
        names |= {
            f"asterism.{cls.__name__}.{name}" for name in dir(cls) if not name.startswith("_")
        }
    return names


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    listed = reference_names(site)
    assert sorted(public_names() - listed) == []
    assert {f"asterism_proto.errors.{cls.__name__}" for cls in errors.ALL} <= listed
    async_names = {
        f"asterism.aio.AsyncGraph.{name}" for name in async_wrapper.public_members(asterism.Graph)
    }
    assert async_names - listed <= {"asterism.aio.AsyncGraph.degrees"}, (
        "which has several signatures and none of its own: the reader of stubs leaves it out"
    )
