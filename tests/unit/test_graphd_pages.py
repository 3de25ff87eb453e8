"""What pages show is of a bounded size and says the truth: rates, quantiles, histograms, runs of parts, spans of numbers."""

from __future__ import annotations

import re
from math import floor, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.images import Edges, Nodes, version_of

from asterism_proto.errors import Deadline, InvalidRequest
from asterism_proto.schema import EdgeType, NodeType, Schema, WeightTable
from asterism_proto.v1 import common_pb2 as pb
from daemonkit.metrics import SECONDS, Metrics, Seen
from graphd.pages import files
from graphd.pages.rates import KEPT, Rates, quantile, together
from graphd.pages.shapes import BARS, RUNS, bars, runs, spans
from graphd.pages.source import Kept
from graphd.read import Spread
from storaged import draw


def spread_of(weights: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Spread:
    counts, sums = np.zeros(1108, np.int64), np.zeros(1108)
    for weight in weights.tolist():
        counts[floor(4 * log2(weight)) + 596] += 1
        sums[floor(4 * log2(weight)) + 596] += weight
    return Spread(counts=counts, sums=sums)


@settings(deadline=None)
@given(st.lists(st.floats(min_value=2**-149, max_value=float(np.finfo(np.float32).max), width=32), min_size=1, max_size=200))
def test_a_histogram_has_every_row_once_in_the_bar_that_its_weight_is_in(values: list[float]) -> None:
    weights = np.array(values, np.float32)
    wide = weights.astype(np.float64)
    made = bars(spread_of(weights))
    assert len(made) <= BARS + 1
    assert [bar.high for bar in made[:-1]] == [bar.low for bar in made[1:]]
    for bar in made:
        inside = (wide >= bar.low) & (wide < bar.high)
        assert log2(bar.high / bar.low) == pytest.approx(log2(made[0].high / made[0].low)), "all are as wide"
        assert bar.rows == int(inside.sum())
        assert bar.weight == pytest.approx(float(wide[inside].sum()), rel=1e-12)
    assert made[0].rows > 0
    assert made[-1].rows > 0


@settings(deadline=None)
@given(st.integers(1, 5000))
def test_runs_of_parts_are_few_and_leave_none_out(parts: int) -> None:
    totals = [pb.Total(part=part, count=1, positive=1, weight=0.5, audit_tv=part / parts) for part in range(parts)]
    made = runs(totals, parts)
    assert len(made) <= RUNS
    assert [part for run in made for part in range(run.first, run.last + 1)] == list(range(parts))
    assert sum(run.count for run in made) == parts
    assert max(run.audit_tv for run in made) == (parts - 1) / parts


@settings(deadline=None)
@given(st.sets(st.integers(0, 60), max_size=30))
def test_spans_name_every_number(numbers: set[int]) -> None:
    text = spans(sorted(numbers))
    if " to " in text:
        first, second, *_ = map(int, re.findall(r"\d+", text))
        assert numbers == set(range(first, max(numbers) + 1, second - first))
        return
    said = [re.fullmatch(r"(\d+)(?:-(\d+))?", word) for word in text.split(", ") if word]
    assert {n for match in said if match for n in range(int(match[1]), int(match[2] or match[1]) + 1)} == numbers


def test_many_spans_are_cut_and_said_to_be() -> None:
    assert spans(range(0, 1000, 8)) == "0, 8, 16 to 992"
    assert spans([3, 1, 2, 7]) == "1-3, 7"
    assert spans([n for n in range(300) if n % 3 != 1 or n == 1]).endswith("more")


def test_a_quantile_is_within_the_bucket_that_it_is_in() -> None:
    def seen(**counts: int) -> Seen:
        buckets = [0] * (len(SECONDS) + 1)
        for name, count in counts.items():
            buckets[int(name[1:])] = count
        return Seen(calls=sum(buckets), errors=0, buckets=tuple(buckets))

    assert quantile(seen(), 0.5) is None
    even = seen(b3=50, b6=50)
    middle, high = quantile(even, 0.25), quantile(even, 0.99)
    assert middle is not None
    assert high is not None
    assert SECONDS[2] < middle < SECONDS[3]
    assert SECONDS[5] < high < SECONDS[6]
    assert quantile(even, 0.5) == pytest.approx(SECONDS[3])
    assert quantile(seen(b17=1), 0.5) == SECONDS[-1]
    assert together([even, even]) == seen(b3=100, b6=100)
    assert together([]).calls == 0


def test_rates_are_differences_and_no_more_of_them_are_kept_than_are_promised() -> None:
    metrics = Metrics("graphd")
    metrics.answered("SampleNodes", "OK", 0.003)
    rates = Rates(metrics, step_s=1000)
    for code, seconds in (("OK", 0.003), ("OK", 0.0001), ("NOT_FOUND", 0.7)):
        metrics.answered("SampleNodes", code, seconds)
    metrics.answered("Neighbors", "OK", 100.0)
    rates.measure()
    rates.measure()
    first, second = rates.steps()
    assert set(first.seen) == {"SampleNodes", "Neighbors"}
    assert (first.seen["SampleNodes"].calls, first.seen["SampleNodes"].errors) == (3, 1)
    assert {SECONDS[i]: n for i, n in enumerate(first.seen["SampleNodes"].buckets[:-1]) if n} == {0.0002: 1, 0.005: 1, 1: 1}
    assert first.seen["Neighbors"].buckets[-1] == 1
    assert second.seen == {}
    for _ in range(KEPT):
        rates.measure()
    assert len(rates.steps()) == KEPT
    assert all(not step.seen for step in rates.steps())


def test_what_is_kept_is_the_last_that_was_asked_for() -> None:
    made: list[int] = []
    kept: Kept[int] = Kept(2)
    for key in (1, 2, 1, 3, 1, 2):
        kept.get(key, lambda key=key: made.append(key) or key)  # type: ignore[func-returns-value, misc]
    assert made == [1, 2, 3, 2]


PARTS = 3


def graph() -> tuple[
    draw.Version, dict[tuple[int, int, str], tuple[np.ndarray[tuple[int], np.dtype[np.float32]], np.ndarray[tuple[int], np.dtype[np.int64]]]]
]:
    """A version with a hole, zeros and very different weights, and the (weights, parts) of each (element, type, name)."""
    rng = np.random.default_rng(5)
    schema = Schema(
        node_types=(NodeType(name="a", weighted=True, tables=(WeightTable(name="steep", expression="weight * weight"),)), NodeType(name="b")),
        edge_types=(EdgeType(src_type="a", relation="r", dst_type="a", weighted=True), EdgeType(src_type="a", relation="q", dst_type="b")),
        parts=PARTS,
    )
    ids = np.delete(np.arange(50), [3, 7])
    own = (rng.random(ids.size) * rng.choice([0, 1e-30, 1, 1e6], ids.size)).astype(np.float32)
    src, dst = rng.choice(ids, 200), rng.choice(ids, 200)
    weights = rng.exponential(3, 200).astype(np.float32)
    version = version_of(
        schema,
        {"a": Nodes(ids=ids, weights=own, dense=True, named={"steep": own * own}), "b": Nodes(ids=np.arange(9))},
        {"a:r:a": Edges(src=src, dst=dst, weights=weights), "a:q:b": Edges(src=src[:20], dst=dst[:20] % 9)},
    )
    ones = np.ones(20, np.float32)
    return version, {
        (draw.NODE, 0, ""): (own, ids % PARTS),
        (draw.NODE, 0, "steep"): (own * own, ids % PARTS),
        (draw.NODE, 1, ""): (ones[:9], np.arange(9) % PARTS),
        (draw.EDGE, 0, ""): (weights, src % PARTS),
        (draw.EDGE, 1, ""): (ones, src[:20] % PARTS),
    }


def test_a_spread_counts_the_live_rows_of_positive_weight_in_the_parts_that_are_asked_for() -> None:
    version, truth = graph()
    for (element, type_id, name), (weights, owner) in truth.items():
        for parts in ([0, 1, 2], [1], []):
            found = draw.weight_spread(version.weighed(name, element, [type_id]), element, type_id, parts, lambda: None)
            mine = weights[np.isin(owner, parts) & (weights > 0)]
            wanted = spread_of(mine)
            assert found.counts.tolist() == wanted.counts.tolist(), (element, type_id, name, parts)
            assert found.sums == pytest.approx(wanted.sums, rel=1e-12)


def test_a_spread_ends_where_its_caller_has_no_more_time() -> None:
    version, _ = graph()

    def no_more() -> None:
        raise Deadline

    with pytest.raises(Deadline):
        draw.weight_spread(version, draw.NODE, 0, [0], no_more)
    with pytest.raises(InvalidRequest, match="node type 9"):
        draw.weight_spread(version, draw.NODE, 9, [0], lambda: None)


def test_the_page_names_only_files_that_there_are() -> None:
    read = files._read(files.resources.files("graphd.pages") / "static", "")
    for name, file in read.items():
        for asked in re.findall(r'(?:href|src)="/ui/static/([^"]+)"', file.body.decode()) if name == "index.html" else ():
            assert asked in read, f"{name} asks for {asked}"
        folder = name.rpartition("/")[0]
        for asked in re.findall(r'from "(\.[^"]+)"', file.body.decode()):
            path = re.sub(r"[^/]+/\.\./", "", f"{folder}/{asked}".replace("/./", "/")).lstrip("./")
            assert path in read, f"{name} imports {asked}"


def test_no_module_makes_markup_or_code_of_text() -> None:
    read = files._read(files.resources.files("graphd.pages") / "static", "")
    for name, file in read.items():
        if name.endswith(".js"):
            found = re.findall(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|createContextualFragment|srcdoc",
                file.body.decode(),
            )
            assert found == [], name
    page = read["index.html"].body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=|\sstyle=|<style", page)
    text = "".join(file.body.decode() for file in read.values())
    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) <= {"http://www.w3.org/2000/svg"}
