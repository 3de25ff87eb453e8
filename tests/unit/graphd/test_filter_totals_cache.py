"""Tests of the cache of filter totals: which entries are evicted and which are dropped."""

from __future__ import annotations

import pytest

from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.routing.filter_totals_cache import FilteredTotals, FilterKey, FilterTotalsCache
from graphd.routing.totals import VersionTotals


def key(text: str, version: int = 1) -> FilterKey:
    return FilterKey(
        space_id=1,
        version=version,
        digest="d",
        text=text,
        element=0,
        types=(0,),
        weight_name="",
        both_directions=False,
        hosts=("s1",),
    )


def entry(plan: str) -> FilteredTotals:
    totals = VersionTotals(parts=1, part_totals={})
    return FilteredTotals(totals=totals, row_filter=storaged_pb.RowFilter(), plan=plan)


def cached(cache: FilterTotalsCache, *keys: FilterKey) -> list[str]:
    """Return the plans of the entries that are cached."""
    return [found.plan for found in map(cache.get, keys) if found is not None]


def test_least_recently_used_filter_is_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphd.routing.filter_totals_cache._MAX_KEPT", 3)
    cache = FilterTotalsCache()
    for text in "abc":
        cache.put(key(text), entry(text))
    assert cached(cache, key("a")) == ["a"]
    cache.put(key("d"), entry("d"))
    assert cached(cache, *map(key, "abcd")) == ["a", "c", "d"]
    cache.put(key("e"), entry("e"))
    assert cached(cache, *map(key, "acde")) == ["c", "d", "e"]


def test_only_entries_of_the_version_are_dropped() -> None:
    cache = FilterTotalsCache()
    cache.put(key("a"), entry("old"))
    cache.put(key("a", version=2), entry("new"))
    cache.forget(1, 1)
    assert cached(cache, key("a"), key("a", version=2)) == ["new"]
