"""Tests of the filter cache: bounded, computed once, freed with its version, resumable."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, restrict_to_parts, version_of
from tests.kit.waiting import HANG_S

from asterism_model.filters.syntax import Term, parse
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import Deadline, InvalidRequest, Stale
from storaged import sampling

SIZE, PARTS = 4000, 4


def version() -> sampling.LocalVersion:
    rng = np.random.default_rng(1)
    schema = Schema(
        node_types=(
            NodeType(name="n", weighted=True, features=(Feature(name="x", dtype="float64"),)),
        ),
        edge_types=(
            EdgeType(
                src_type="n",
                relation="e",
                dst_type="n",
                features=(Feature(name="y", dtype="float64"),),
            ),
        ),
        parts=PARTS,
    )
    nodes = Nodes(
        ids=np.arange(SIZE),
        weights=rng.random(SIZE).astype(np.float32),
        features={"x": (np.arange(SIZE) + 0.5) / SIZE},
    )
    edges = Edges(
        src=rng.integers(0, SIZE, SIZE),
        dst=rng.integers(0, SIZE, SIZE),
        features={"y": rng.random(SIZE)},
    )
    return version_of(schema, {"n": nodes}, {"n:e:n": edges})


def row_filter(text: str, element: int = sampling.NODE) -> sampling.RowFilter:
    return sampling.RowFilter(text=parse(text).canonical, element=element, types=(0,))


class CheckpointCounter:
    """Counts scanned blocks; raises at one of them."""

    def __init__(self, stop_at: int = -1) -> None:
        self.count, self._stop_at = 0, stop_at

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._stop_at:
            raise Deadline("the time is up")


def test_filter_is_evaluated_once_and_shared() -> None:
    cache, local_version, first_scan, second_scan = (
        sampling.FilterCache(1 << 20),
        version(),
        CheckpointCounter(),
        CheckpointCounter(),
    )
    totals = cache.filtered_totals(local_version, row_filter("x < 0.5"), [0, 3], first_scan)
    assert first_scan.count == PARTS  # one block per partition
    assert {key: part_totals.count for key, part_totals in totals.items()} == {
        (sampling.NODE, 0, 0): SIZE // 2 // PARTS,
        (sampling.NODE, 0, 3): SIZE // 2 // PARTS,
    }
    all_totals = cache.filtered_totals(
        local_version, row_filter("0.5 > x"), list(range(PARTS)), second_scan
    )
    filtered_version = cache.filtered_version(
        local_version, row_filter("x < 0.5"), all_totals, second_scan
    )
    assert (
        cache.filtered_version(local_version, row_filter("x < 0.5"), dict(all_totals), second_scan)
        is filtered_version
    )
    assert second_scan.count == 0


def test_timed_out_evaluation_resumes_where_it_stopped() -> None:
    cache, local_version, first_scan, second_scan = (
        sampling.FilterCache(1 << 20),
        version(),
        CheckpointCounter(stop_at=3),
        CheckpointCounter(),
    )
    with pytest.raises(Deadline):
        cache.filtered_totals(local_version, row_filter("x < 0.5"), [0], first_scan)
    cache.filtered_totals(local_version, row_filter("x < 0.5"), [0], second_scan)
    assert second_scan.count == PARTS - 2


def test_expired_request_does_not_wait_for_another_scan() -> None:
    cache, local_version = sampling.FilterCache(1 << 20), version()
    scan_started, release_scan = threading.Event(), threading.Event()

    def block_scan() -> None:
        scan_started.set()
        assert release_scan.wait(HANG_S)

    thread = threading.Thread(
        target=cache.filtered_totals, args=(local_version, row_filter("x < 0.5"), [0], block_scan)
    )
    thread.start()
    try:
        assert scan_started.wait(HANG_S)
        with pytest.raises(Deadline):
            cache.filtered_totals(
                local_version, row_filter("x < 0.5"), [0], CheckpointCounter(stop_at=1)
            )
    finally:
        release_scan.set()
        thread.join(HANG_S)
    assert (
        cache.filtered_totals(
            local_version, row_filter("x < 0.5"), [0], CheckpointCounter(stop_at=1)
        )[sampling.NODE, 0, 0].count
        == SIZE // 2 // PARTS
    )


def test_least_recently_used_filter_is_evicted() -> None:
    local_version, entry_bytes = version(), SIZE * 20 + SIZE
    cache = sampling.FilterCache(2 * entry_bytes)
    texts = ("x < 1", "x < 2", "x < 3")
    for text in (texts[0], texts[1], texts[0], texts[2]):
        cache.filtered_totals(local_version, row_filter(text), [0], CheckpointCounter())
    scans = {text: CheckpointCounter() for text in texts}
    for text in (texts[0], texts[2], texts[1]):
        cache.filtered_totals(local_version, row_filter(text), [0], scans[text])
    assert [scans[text].count for text in texts] == [0, PARTS, 0]


def test_filter_larger_than_the_cache_is_refused() -> None:
    cache, local_version = sampling.FilterCache(SIZE * 10), version()
    with pytest.raises(
        InvalidRequest,
        match=(
            r"filter 'x < 0.9': its matches take [\d,]+ bytes or more .* at most 40,000; "
            r"narrow the filter, or raise"
        ),
    ):
        cache.filtered_totals(local_version, row_filter("x < 0.9"), [0], CheckpointCounter())
    assert (
        cache.filtered_totals(local_version, row_filter("x < 0.1"), [0], CheckpointCounter())[
            sampling.NODE, 0, 0
        ].count
        == SIZE // 10 // PARTS
    )


def test_cached_filters_are_freed_with_their_version() -> None:
    cache, local_version = sampling.FilterCache(1 << 20), version()
    totals = cache.filtered_totals(
        local_version, row_filter("x < 0.5"), list(range(PARTS)), CheckpointCounter()
    )
    filtered_version = cache.filtered_version(
        local_version, row_filter("x < 0.5"), totals, CheckpointCounter()
    )
    image = weakref.ref(filtered_version.image(0).nodes[0].table.hot)
    gc.disable()
    try:
        del filtered_version, local_version
        assert image() is None
    finally:
        gc.enable()


def test_remote_features_are_stale_until_reported() -> None:
    full_version = version()
    local_version, remote_version = (
        restrict_to_parts(full_version, [0, 1]),
        restrict_to_parts(full_version, [2, 3]),
    )
    cache, text = sampling.FilterCache(1 << 20), "y < 0.5 and dst.x < 0.5"
    with pytest.raises(Stale, match=r"'y < 0\.5' are not known here"):
        cache.filtered_totals(
            local_version, row_filter(text, sampling.EDGE), [0], CheckpointCounter()
        )
    matches = {}
    for host_version in (local_version, remote_version):
        for part in host_version.parts:
            for term_text, local_text, element in (
                ("y < 0.5", "y < 0.5", sampling.EDGE),
                ("dst.x < 0.5", "x < 0.5", sampling.NODE),
            ):
                term = parse(local_text).predicate
                assert isinstance(term, Term)
                matches[0, term_text, part] = sampling.evaluate_term(
                    host_version, part, element, 0, term, CheckpointCounter()
                )
    totals = cache.filtered_totals(
        local_version,
        row_filter(text, sampling.EDGE),
        [0, 1],
        CheckpointCounter(),
        sampling.RemoteMatches(found=matches),
    )
    expected = sampling.FilterCache(1 << 20).filtered_totals(
        full_version, row_filter(text, sampling.EDGE), [0, 1], CheckpointCounter()
    )
    assert totals == expected
    assert 0 < totals[sampling.EDGE, 0, 0].count < SIZE
