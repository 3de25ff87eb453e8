"""Tests of the data of pages: bounded in size, and correct.

They cover rates, quantiles, histograms, runs of partitions, and spans of numbers.
"""

from __future__ import annotations

import re
from importlib import resources
from math import floor, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.images import Edges, Nodes, version_of

from asterism_daemonkit.http.static_files import read_folder
from asterism_daemonkit.metrics import LATENCY_BUCKETS_S, MethodStats, Metrics
from asterism_model.schema import EdgeType, NodeType, Schema, WeightTable
from asterism_proto.errors import Deadline, InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators.reads import WeightHistogram
from graphd.pages.catalog_reader import LruCache
from graphd.pages.plot_data import MAX_BARS, MAX_RANGES, format_ranges, histogram_bars, part_ranges
from graphd.pages.rates import MAX_INTERVALS, RateMonitor, combine, quantile
from storaged import sampling


def histogram_of(weights: np.ndarray[tuple[int], np.dtype[np.float32]]) -> WeightHistogram:
    counts, sums = np.zeros(1108, np.int64), np.zeros(1108)
    for weight in weights.tolist():
        counts[floor(4 * log2(weight)) + 596] += 1
        sums[floor(4 * log2(weight)) + 596] += weight
    return WeightHistogram(counts=counts, sums=sums)


@settings(deadline=None)
@given(
    st.lists(
        st.floats(min_value=2**-149, max_value=float(np.finfo(np.float32).max), width=32),
        min_size=1,
        max_size=200,
    )
)
def test_histogram_counts_each_row_in_the_bar_of_its_weight(values: list[float]) -> None:
    weights = np.array(values, np.float32)
    wide = weights.astype(np.float64)
    histogram = histogram_bars(histogram_of(weights))
    assert len(histogram) <= MAX_BARS + 1
    assert [bar.high for bar in histogram[:-1]] == [bar.low for bar in histogram[1:]]
    for bar in histogram:
        in_bar = (wide >= bar.low) & (wide < bar.high)
        assert log2(bar.high / bar.low) == pytest.approx(
            log2(histogram[0].high / histogram[0].low)
        ), "all are as wide"
        assert bar.rows == int(in_bar.sum())
        assert bar.weight == pytest.approx(float(wide[in_bar].sum()), rel=1e-12)
    assert histogram[0].rows > 0
    assert histogram[-1].rows > 0


@settings(deadline=None)
@given(st.integers(1, 5000))
def test_part_ranges_are_few_and_cover_all_parts(parts: int) -> None:
    totals = [
        common_pb.PartitionStats(part=part, count=1, positive=1, weight=0.5, audit_tv=part / parts)
        for part in range(parts)
    ]
    ranges = part_ranges(totals, parts)
    assert len(ranges) <= MAX_RANGES
    assert [
        part for part_range in ranges for part in range(part_range.first, part_range.last + 1)
    ] == list(range(parts))
    assert sum(part_range.count for part_range in ranges) == parts
    assert max(part_range.audit_tv for part_range in ranges) == (parts - 1) / parts


@settings(deadline=None)
@given(st.sets(st.integers(0, 60), max_size=30))
def test_formatted_ranges_cover_every_number(numbers: set[int]) -> None:
    text = format_ranges(sorted(numbers))
    if " to " in text:
        first, second, *_ = map(int, re.findall(r"\d+", text))
        assert numbers == set(range(first, max(numbers) + 1, second - first))
        return
    matches = [re.fullmatch(r"(\d+)(?:-(\d+))?", item) for item in text.split(", ") if item]
    assert {
        n for match in matches if match for n in range(int(match[1]), int(match[2] or match[1]) + 1)
    } == numbers


def test_long_lists_of_ranges_are_visibly_truncated() -> None:
    assert format_ranges(range(0, 1000, 8)) == "0, 8, 16 to 992"
    assert format_ranges([3, 1, 2, 7]) == "1-3, 7"
    assert format_ranges([n for n in range(300) if n % 3 != 1 or n == 1]).endswith("more")


def test_quantile_lies_within_its_bucket() -> None:
    def stats_of(**counts: int) -> MethodStats:
        buckets = [0] * (len(LATENCY_BUCKETS_S) + 1)
        for name, count in counts.items():
            buckets[int(name[1:])] = count
        return MethodStats(calls=sum(buckets), errors=0, buckets=tuple(buckets))

    assert quantile(stats_of(), 0.5) is None
    stats = stats_of(b3=50, b6=50)
    middle, high = quantile(stats, 0.25), quantile(stats, 0.99)
    assert middle is not None
    assert high is not None
    assert LATENCY_BUCKETS_S[2] < middle < LATENCY_BUCKETS_S[3]
    assert LATENCY_BUCKETS_S[5] < high < LATENCY_BUCKETS_S[6]
    assert quantile(stats, 0.5) == pytest.approx(LATENCY_BUCKETS_S[3])
    assert quantile(stats_of(b17=1), 0.5) == LATENCY_BUCKETS_S[-1]
    assert combine([stats, stats]) == stats_of(b3=100, b6=100)
    assert combine([]).calls == 0


def test_rates_are_differences_and_bounded_in_number() -> None:
    metrics = Metrics("graphd")
    metrics.count_call("SampleNodes", "OK", 0.003)
    rates = RateMonitor(metrics, interval_s=1000)
    for code, seconds in (("OK", 0.003), ("OK", 0.0001), ("NOT_FOUND", 0.7)):
        metrics.count_call("SampleNodes", code, seconds)
    metrics.count_call("Neighbors", "OK", 100.0)
    rates.measure()
    rates.measure()
    first, second = rates.intervals()
    assert set(first.by_method) == {"SampleNodes", "Neighbors"}
    assert (first.by_method["SampleNodes"].calls, first.by_method["SampleNodes"].errors) == (3, 1)
    assert {
        LATENCY_BUCKETS_S[i]: n
        for i, n in enumerate(first.by_method["SampleNodes"].buckets[:-1])
        if n
    } == {0.0002: 1, 0.005: 1, 1: 1}
    assert first.by_method["Neighbors"].buckets[-1] == 1
    assert second.by_method == {}
    for _ in range(MAX_INTERVALS):
        rates.measure()
    assert len(rates.intervals()) == MAX_INTERVALS
    assert all(not step.by_method for step in rates.intervals())


def test_rates_read_no_counts_while_nothing_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics("graphd")
    rates = RateMonitor(metrics, interval_s=1000)
    original, reads = metrics.method_stats, list[int]()

    def record_read() -> dict[str, MethodStats]:
        reads.append(1)
        return original()

    monkeypatch.setattr(metrics, "method_stats", record_read)
    rates.measure()
    assert reads == []
    metrics.count_call("SampleNodes", "OK", 0.003)
    rates.measure()
    rates.measure()
    assert len(reads) == 1
    assert [list(interval.by_method) for interval in rates.intervals()] == [[], ["SampleNodes"], []]


def test_lru_cache_keeps_the_last_used_items() -> None:
    computed: list[int] = []
    cache: LruCache[int] = LruCache(2)
    for key in (1, 2, 1, 3, 1, 2):
        cache.get(key, lambda key=key: computed.append(key) or key)  # type: ignore[func-returns-value, misc]
    assert computed == [1, 2, 3, 2]


PARTS = 3


def graph() -> tuple[
    sampling.LocalVersion,
    dict[
        tuple[int, int, str],
        tuple[
            np.ndarray[tuple[int], np.dtype[np.float32]], np.ndarray[tuple[int], np.dtype[np.int64]]
        ],
    ],
]:
    """Return a version with a hole, zeros and very different weights.

    Also returns the (weights, partitions) of each (element, type, name).
    """
    rng = np.random.default_rng(5)
    schema = Schema(
        node_types=(
            NodeType(
                name="a",
                weighted=True,
                tables=(WeightTable(name="steep", expression="weight * weight"),),
            ),
            NodeType(name="b"),
        ),
        edge_types=(
            EdgeType(src_type="a", relation="r", dst_type="a", weighted=True),
            EdgeType(src_type="a", relation="q", dst_type="b"),
        ),
        parts=PARTS,
    )
    ids = np.delete(np.arange(50), [3, 7])
    node_weights = (rng.random(ids.size) * rng.choice([0, 1e-30, 1, 1e6], ids.size)).astype(
        np.float32
    )
    src, dst = rng.choice(ids, 200), rng.choice(ids, 200)
    weights = rng.exponential(3, 200).astype(np.float32)
    version = version_of(
        schema,
        {
            "a": Nodes(
                ids=ids,
                weights=node_weights,
                dense=True,
                extra_weights={"steep": node_weights * node_weights},
            ),
            "b": Nodes(ids=np.arange(9)),
        },
        {
            "a:r:a": Edges(src=src, dst=dst, weights=weights),
            "a:q:b": Edges(src=src[:20], dst=dst[:20] % 9),
        },
    )
    ones = np.ones(20, np.float32)
    return version, {
        (sampling.NODE, 0, ""): (node_weights, ids % PARTS),
        (sampling.NODE, 0, "steep"): (node_weights * node_weights, ids % PARTS),
        (sampling.NODE, 1, ""): (ones[:9], np.arange(9) % PARTS),
        (sampling.EDGE, 0, ""): (weights, src % PARTS),
        (sampling.EDGE, 1, ""): (ones, src[:20] % PARTS),
    }


def test_weight_histogram_counts_live_positive_rows_of_parts() -> None:
    version, truth = graph()
    for (element, type_id, name), (weights, owner) in truth.items():
        for parts in ([0, 1, 2], [1], []):
            histogram = sampling.build_histogram(
                version.with_weights(name, element, [type_id]),
                element,
                type_id,
                parts,
                lambda: None,
            )
            selected = weights[np.isin(owner, parts) & (weights > 0)]
            expected = histogram_of(selected)
            assert histogram.counts.tolist() == expected.counts.tolist(), (
                element,
                type_id,
                name,
                parts,
            )
            assert histogram.sums == pytest.approx(expected.sums, rel=1e-12)


def test_weight_histogram_stops_at_the_deadline() -> None:
    version, _ = graph()

    def raise_deadline() -> None:
        raise Deadline

    with pytest.raises(Deadline):
        sampling.build_histogram(version, sampling.NODE, 0, [0], raise_deadline)
    with pytest.raises(InvalidRequest, match="node type 9"):
        sampling.build_histogram(version, sampling.NODE, 9, [0], lambda: None)


def test_pages_reference_only_existing_files() -> None:
    static_files = read_folder(resources.files("graphd.pages") / "static")
    for name, file in static_files.items():
        for reference in (
            re.findall(r'(?:href|src)="/ui/static/([^"]+)"', file.body.decode())
            if name == "index.html"
            else ()
        ):
            assert reference in static_files, f"{name} asks for {reference}"
        folder = name.rpartition("/")[0]
        for reference in re.findall(r'from "(\.[^"]+)"', file.body.decode()):
            path = re.sub(r"[^/]+/\.\./", "", f"{folder}/{reference}".replace("/./", "/")).lstrip(
                "./"
            )
            assert path in static_files, f"{name} imports {reference}"


def test_no_script_makes_markup_or_code_of_text() -> None:
    static_files = read_folder(resources.files("graphd.pages") / "static")
    for name, file in static_files.items():
        if name.endswith(".js"):
            matches = re.findall(
                (
                    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|"
                    r"new Function|createContextualFragment|srcdoc"
                ),
                file.body.decode(),
            )
            assert matches == [], name
    page = static_files["index.html"].body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=|\sstyle=|<style", page)
    # Vendored libraries begin with a comment that has their own address.
    text = "".join(
        re.sub(r"\A// https://d3js\.org/.*\n", "", file.body.decode())
        for file in static_files.values()
    )
    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) <= {"http://www.w3.org/2000/svg"}
