"""Streaming partitioners, compared with a plain Python definition and their stated bounds."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.export.partitioning import streaming_partitioning
from asterism.export.partitioning.edge_list_file import EdgeListFile
from asterism.export.scratch_files import Spool
from asterism_graphkit.random.rng import bounded, key_of, word

EVERYTHING = 0x7FFFFFFFFFFFFFFF


@dataclass(frozen=True, kw_only=True)
class Case:
    sizes: list[int]
    """Number of nodes of each type."""
    edges: list[tuple[int, int]]
    values: list[int]
    """Class of each node; some class numbers may be unused."""
    groups: int
    trainers: int
    method: str
    balance_edges: bool
    imbalance: float
    seed: int
    passes: int
    stretch: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sizes = draw(st.lists(st.integers(0, 20), min_size=1, max_size=3).filter(any))
    n = sum(sizes)
    node = st.integers(0, n - 1)
    return Case(
        sizes=sizes,
        edges=draw(st.lists(st.tuples(node, node), max_size=120)),
        values=draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)),
        groups=draw(st.integers(1, 4)),
        trainers=draw(st.integers(1, 3)),
        method=draw(st.sampled_from(streaming_partitioning.METHODS)),
        balance_edges=draw(st.booleans()),
        imbalance=draw(st.sampled_from([0.001, 0.03, 0.5])),
        seed=draw(st.integers(0, 1 << 40)),
        passes=draw(st.integers(1, 3)),
        stretch=draw(st.sampled_from([1, 7, 50, 1 << 20])),
    )


def make_edge_list(case: Case, folder: Path) -> EdgeListFile:
    n = sum(case.sizes)
    endpoints = np.array(case.edges, np.int64).reshape(-1, 2)
    non_loops = endpoints[endpoints[:, 0] != endpoints[:, 1]]
    spool = Spool(path=folder / "pairs", dtype=np.dtype(np.int32), shape=(2,))
    spool.append(non_loops)
    return EdgeListFile(
        spool=spool,
        degrees=np.bincount(non_loops.reshape(-1), minlength=n),
        in_degrees=np.bincount(endpoints[:, 1], minlength=n),
    )


def partition(case: Case) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        owners = streaming_partitioning.partition_stream(
            make_edge_list(case, Path(folder)),
            np.array(case.sizes),
            parts=case.groups * case.trainers,
            groups=case.groups,
            method=case.method,
            constraints=streaming_partitioning.BalanceConstraints(
                classes=np.array(case.values, np.uint8),
                edges=case.balance_edges,
                imbalance=case.imbalance,
            ),
            seed=case.seed,
            passes=case.passes,
            scratch=Path(folder),
            block_entries=case.stretch,
        )
        assert {path.name for path in Path(folder).iterdir()} <= {"pairs"}
        return owners


def interleaved_nodes(sizes: list[int]) -> list[int]:
    """Return all nodes, ordered by the fraction of their type that precedes them."""
    first = np.cumsum([0, *sizes])
    shares = [
        ((rank + 0.5) / size, kind, int(first[kind]) + rank)
        for kind, size in enumerate(sizes)
        for rank in range(size)
    ]
    return [node for _, _, node in sorted(shares)]


def reference_owners(case: Case) -> list[int]:
    """Return the partition of each node, following the module's definition node by node."""
    n, parts = sum(case.sizes), case.groups * case.trainers
    neighbors: list[list[int]] = [[] for _ in range(n)]
    in_degrees = [0] * n
    for src, dst in case.edges:
        in_degrees[dst] += 1
        if src != dst:
            neighbors[src].append(dst)
            neighbors[dst].append(src)
    class_sizes = np.bincount(case.values)
    capacity = [math.ceil((1 + case.imbalance) * (c / parts)) for c in class_sizes]
    has_load_limit = case.balance_edges and bool(case.edges)
    load_capacity = (
        math.ceil((1 + case.imbalance) * len(case.edges) / parts) if has_load_limit else EVERYTHING
    )
    penalty = 1.5 * sum(map(len, neighbors)) / 2 / n
    key = key_of(case.seed, streaming_partitioning._PURPOSE)
    owners = [-1] * n
    for _ in range(case.passes):
        size, load = np.zeros((len(class_sizes), parts), int), np.zeros(parts, int)
        for v in interleaved_nodes(case.sizes):
            c = case.values[v]

            def best(
                choices: list[list[int]],
                first: int,
                v: int = v,
                c: int = c,
                size: np.ndarray = size,
                load: np.ndarray = load,
            ) -> list[int]:
                """Return the best set of partitions among `choices`."""
                ranked = []
                for index in range(len(choices)):
                    choice = choices[(first + index) % len(choices)]
                    neighbor_count = sum(owners[u] in choice for u in neighbors[v])
                    node_count, part_load = int(size[c, choice].sum()), int(load[choice].sum())
                    if node_count >= capacity[c] * len(choice):
                        continue
                    if case.method == "ldg":
                        score = neighbor_count * (1.0 - node_count / (capacity[c] * len(choice)))
                        if has_load_limit:
                            score *= max(0.0, 1.0 - part_load / (load_capacity * len(choice)))
                    else:
                        score = neighbor_count - penalty * math.sqrt(
                            node_count / (class_sizes[c] / parts * len(choice))
                        )
                        if has_load_limit:
                            score -= penalty * math.sqrt(
                                part_load / (len(case.edges) / parts * len(choice))
                            )
                    fits = not has_load_limit or part_load + in_degrees[v] <= load_capacity * len(
                        choice
                    )
                    ranked.append(
                        (not fits, -score if fits else float(part_load), node_count, index, choice)
                    )
                return min(ranked)[-1]

            def random_choice(counter: np.uint64, choices: int) -> int:
                return int(bounded(np.uint64(word(key, counter)), np.uint64(choices)))

            groups = [
                list(range(g * case.trainers, (g + 1) * case.trainers)) for g in range(case.groups)
            ]
            group = best(groups, random_choice(np.uint64(v), case.groups))
            (owner,) = (
                best([[p] for p in group], random_choice(~np.uint64(v), case.trainers))
                if case.trainers > 1
                else group
            )
            owners[v] = owner
            size[c, owner] += 1
            load[owner] += in_degrees[v]
    return owners


@settings(deadline=None, max_examples=300)
@given(cases())
def test_owners_equal_the_reference(case: Case) -> None:
    assert partition(case).tolist() == reference_owners(case)


@settings(deadline=None, max_examples=200)
@given(cases())
def test_no_part_exceeds_its_share_and_imbalance_of_a_class(case: Case) -> None:
    owners, parts = partition(case), case.groups * case.trainers
    assert owners.min() >= 0
    for value in set(case.values):
        class_owners = owners[np.array(case.values) == value]
        assert np.bincount(class_owners, minlength=parts).max() <= math.ceil(
            (1 + case.imbalance) * len(class_owners) / parts
        )


def communities(nodes: int, edges: int, *, seed: int) -> list[tuple[int, int]]:
    """Return edges of 20 communities, 80 % inside one; ids do not reveal the community."""
    generator = np.random.default_rng(seed)
    src = generator.integers(0, nodes, edges)
    same_community = src // (nodes // 20) * (nodes // 20) + generator.integers(
        0, nodes // 20, edges
    )
    dst = np.where(
        generator.random(edges) < 0.8, same_community, generator.integers(0, nodes, edges)
    )
    shuffled_ids = generator.permutation(nodes)
    return list(zip(shuffled_ids[src].tolist(), shuffled_ids[dst].tolist(), strict=True))


@pytest.mark.parametrize("method", streaming_partitioning.METHODS)
def test_more_passes_cut_fewer_edges_and_all_fewer_than_chance(method: str) -> None:
    edges = communities(4000, 40_000, seed=1)
    cuts = []
    for passes in (1, 8):
        case = Case(
            sizes=[4000],
            edges=edges,
            values=[0] * 4000,
            groups=4,
            trainers=1,
            method=method,
            balance_edges=False,
            imbalance=0.03,
            seed=1,
            passes=passes,
            stretch=1 << 16,
        )
        owners = partition(case)
        cuts.append(np.mean([owners[a] != owners[b] for a, b in edges]))
    assert cuts[0] < 0.65  # random assignment: 0.75
    assert cuts[1] < 0.4


@pytest.mark.parametrize("method", streaming_partitioning.METHODS)
def test_in_degrees_are_balanced_on_request(method: str) -> None:
    generator = np.random.default_rng(2)
    # A tenth of the nodes have most of the edges, and their ids are adjacent.
    dst = np.where(
        generator.random(20_000) < 0.8,
        generator.integers(0, 200, 20_000),
        generator.integers(0, 2000, 20_000),
    )
    src = np.where(generator.random(20_000) < 0.9, dst, generator.integers(0, 2000, 20_000))
    src = np.where(src == dst, (dst + generator.integers(1, 50, 20_000)) % 2000, src)
    loads = []
    for balance_edges in (False, True):
        case = Case(
            sizes=[2000],
            edges=list(zip(src.tolist(), dst.tolist(), strict=True)),
            values=[0] * 2000,
            groups=4,
            trainers=1,
            method=method,
            balance_edges=balance_edges,
            imbalance=0.1,
            seed=1,
            passes=3,
            stretch=1 << 16,
        )
        loads.append(np.bincount(partition(case)[dst], minlength=4).max() / 5000)
    # The heavy nodes come first. Once a partition is full of nodes or edges, later nodes go to
    # partitions with free capacity.
    assert loads[0] > 3
    assert loads[1] < 1.3
