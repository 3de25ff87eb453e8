"""Every code block of every documentation page runs unchanged or is marked otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.kit import pages
from tests.kit.certificates import Authority
from tests.kit.cluster import LocalCluster
from tests.kit.pages import Block, Runner

RUN_ELSEWHERE = {"README.md", "training.md", "euler.md", "pglbox.md"}
"""Pages that have a test program of their own.

The tests are `tests/structure/test_readme.py` and
``tests/integration/frameworks/test_*_page.py``.
"""
SHOP_SETUP = """
import numpy as np
import asterism
client = asterism.connect("localhost:9669")
client.create_space("shop", {
    "direction": "both",
    "nodes": {
        "user": {"features": {"age": "float32"}},
        "item": {"weighted": True, "features": {"vector": {"dtype": "float32", "shape": [4]}}},
    },
    "edges": {"user:buys:item": {"weighted": True}, "item:bought_by:user": {}},
})
shop, rng = client.graph("shop"), np.random.default_rng(0)
shop.upsert_nodes(np.arange(300), "user", features={"age": rng.random(300)})
shop.upsert_nodes(
    np.arange(20_000),
    "item",
    weights=rng.random(20_000),
    features={"vector": rng.random((20_000, 4))},
)
src, dst = rng.integers(0, 300, 2000), rng.integers(0, 20_000, 2000)
shop.upsert_edges(src, dst, "buys", weights=rng.random(2000))
shop.upsert_edges(dst, src, "bought_by")
shop.build()
"""
SETUP_CODE: Mapping[str, str] = {
    "asyncio.md": SHOP_SETUP,
    "jobs.md": SHOP_SETUP,
    "protocol.md": SHOP_SETUP,
    "export.md": SHOP_SETUP
    + """
from pathlib import Path
Path("ip_config.txt").write_text("one\\ntwo\\n")
dgl_ids, ids = np.arange(5), np.arange(7)
""",
    "loading.md": """
from pathlib import Path
import asterism
from asterism.formats.generate import Shop, write_dgl
client = asterism.connect("localhost:9669")
write_dgl(Shop(users=300, items=50, clicks=2000, seed=1), Path("demo-data"))
""",
}
"""Code that sets up the state assumed by each page."""
SIZES = {"users=1_000_000, items=100_000, clicks=20_000_000": "users=500, items=50, clicks=3_000"}
PAGES = [
    page
    for page in pages.all_pages()
    if not pages.is_translation(page)
    and any(block.kind in ("python", "sh") for block in pages.blocks(page))
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, graphds=2) as running:
        yield running


@pytest.fixture
def no_spaces(cluster: LocalCluster) -> Iterator[None]:
    yield
    with cluster.client() as client:
        for space in client.spaces():
            client.drop_space(space.name)


@pytest.mark.pyg
@pytest.mark.dgl
@pytest.mark.usefixtures("no_spaces")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in RUN_ELSEWHERE], ids=lambda page: page.name
)
def test_the_code_of_a_page_runs(
    page: Path, pyg_python: Path, dgl_python: Path, cluster: LocalCluster, tmp_path: Path
) -> None:
    pythons = {"python": Path(sys.executable), "python torch": pyg_python, "python dgl": dgl_python}
    # Handwritten requests go to a single address.
    replacements = {
        "localhost:9669": cluster["graphd-0"].address
        if page.name == "protocol.md"
        else cluster.addresses,
        **SIZES,
    }
    if page.name == "security.md":
        Authority(tmp_path).issue("me")  # the files that the page names
    with Runner(
        page, tmp_path, pythons, replacements, {"ASTERISM_ADDRESS": cluster.addresses}
    ) as runner:
        if page.name in SETUP_CODE:
            runner.run(Block(kind="python", file="", code=SETUP_CODE[page.name], line=0))
        for block in pages.blocks(page):
            runner.run(block)


def test_a_block_that_fails_is_named_by_its_page_and_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n```python\nx = 1\n```\n\n```python\nassert x == 1\n\nraise "
        "ValueError(x)\n```\n"
    )
    with Runner(page, tmp_path, {"python": Path(sys.executable)}, {}, {}) as runner:
        first, second = pages.blocks(page)
        runner.run(first)
        with pytest.raises(AssertionError, match=r'(?s)page.md", line 10.*ValueError: 1'):
            runner.run(second)
