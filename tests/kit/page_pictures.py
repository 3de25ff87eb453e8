"""Generator of the screenshots in ``docs/pages.md``, from the real pages in Chromium.

``python -m tests.kit.page_pictures`` writes them to ``docs/pictures``. The graph and its weights
are always the same; times, addresses and the use of the machine differ.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import asterism
from asterism_standalone.app import Standalone
from tests.kit.browser import browser_path, chromium, monitored_page
from tests.kit.waiting import HANG_S

PICTURES = Path(__file__).parents[2] / "docs/pictures"
OVERVIEW = PICTURES / "pages-overview.png"
WEIGHTS, JOBS = PICTURES / "pages-weights.png", PICTURES / "pages-jobs-dark.png"
USERS, ITEMS, PURCHASES, BUILDS = 20_000, 30_000, 60_000, 3
DISK_USE_IS_KNOWN = "() => document.querySelector('#largest tbody td').innerText !== '–'"
"""Condition of the overview after the first measurement of folders."""
SCHEMA = {
    "parts": 16,
    "direction": "both",
    "nodes": {
        "user": {},
        "item": {
            "weighted": True,
            "features": {"price": "float32"},
            "tables": {"cheap": "weight / price"},
        },
    },
    "edges": {"user:buys:item": {"weighted": True}},
}


def load(client: asterism.Client) -> None:
    """Load a shop with skewed weights, build it some times, audit it, and sample."""
    rng = np.random.default_rng(1)
    client.create_space("shop", SCHEMA)
    shop = client.graph("shop")
    shop.upsert_nodes(np.arange(USERS), "user")
    weights, prices = np.exp(rng.normal(1, 1.6, ITEMS)), np.exp(rng.normal(2, 1, ITEMS))
    shop.upsert_nodes(np.arange(ITEMS), "item", weights=weights, features={"price": prices})
    ends = rng.integers(0, USERS, PURCHASES), rng.integers(0, ITEMS, PURCHASES)
    shop.upsert_edges(*ends, "buys", weights=rng.integers(1, 4, PURCHASES))
    for _ in range(BUILDS):
        shop.build(timeout_s=HANG_S)
        shop.upsert_nodes([0], "user")
    client.wait(client.submit_job("shop", "audit").job_id, timeout_s=HANG_S)
    for seed in range(200):
        shop.sample_neighbors(np.arange(64), "buys", 5, seed=seed)


def main() -> int:
    """Write the pictures; return the exit status."""
    path = browser_path()
    if path is None:
        print("expected Chromium: Debian's package `chromium-headless-shell`", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        service = Standalone(Path(folder), compile_ahead=False)
        service.start()
        try:
            endpoints = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
            with asterism.connect(endpoints.address, timeout_s=HANG_S) as client:
                load(client)
            take_pictures(path, f"http://{endpoints.http_address}")
        finally:
            service.stop()
    return 0


def take_pictures(browser: str, address: str) -> None:
    """Write a picture of each page of a service that has the shop."""
    with chromium(browser) as running:
        with monitored_page(running, address) as watch:
            watch.page.set_default_timeout(1000 * HANG_S)
            page = watch.open("/ui")
            page.wait_for_selector("svg.spark path.line[d*=L]", state="attached")
            page.wait_for_function(DISK_USE_IS_KNOWN)
            page.screenshot(path=OVERVIEW, full_page=True)
            page = watch.open(f"/ui/spaces/shop/versions/{BUILDS}?weights=node%3A1%3A")
            page.screenshot(path=WEIGHTS, full_page=True)
        with monitored_page(running, address, width=400, scheme="dark") as watch:
            watch.page.set_default_timeout(1000 * HANG_S)
            watch.open("/ui/jobs").screenshot(path=JOBS)


if __name__ == "__main__":
    sys.exit(main())
