"""Walks against their definition: one neighbor a step, drawn for the walk's place, and by p and q candidate after candidate."""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, hosted, version_of

from asterism_proto.errors import AsterismError, InvalidRequest, Unavailable
from asterism_proto.schema import EdgeType, NodeType, Schema
from graphkit import rng, split
from storaged import draw

FORMS = ["mod", "mix64", "sparse", "holes"]
PARTS = 3
HEAVY, PLAIN, EVEN, TO, FRO = range(5)


def graph(form: str) -> tuple[draw.Version, np.ndarray[Any, np.dtype[np.int64]]]:
    """Two node types; rows of few and many edges, of zero weights only, and none."""
    random = np.random.default_rng(len(form))
    relations = [("n", "heavy", "n", True), ("n", "plain", "n", False), ("n", "even", "n", True), ("n", "to", "m", True), ("m", "fro", "n", True)]
    schema = Schema(
        node_types=(NodeType(name="n"), NodeType(name="m")),
        edge_types=tuple(EdgeType(src_type=src, relation=name, dst_type=dst, weighted=weighted) for src, name, dst, weighted in relations),
        parts=PARTS,
        placement="mix64" if form == "mix64" else "mod",
        direction="both",
    )
    ids = np.unique(random.integers(0, 2**40, 120)) if form == "sparse" else np.arange(120)
    if form == "holes":
        ids = np.delete(ids, np.arange(7, 120, 13))
    weights = np.exp(random.normal(size=1200) * 3) * (random.random(1200) > 0.3)
    src = random.choice(ids[:100], 1200, p=np.arange(1, 101) / np.arange(1, 101).sum())
    weights[np.isin(src, ids[:9])] = 0
    edges = {
        "n:heavy:n": Edges(
            src=src, dst=random.choice(ids[:30], 1200), weights=weights.astype(np.float32), eids=random.permutation(9000)[:1200].astype(np.int64)
        ),
        "n:plain:n": Edges(src=random.choice(ids, 800), dst=random.choice(ids[:25], 800)),
        "n:even:n": Edges(src=random.choice(ids, 200), dst=random.choice(ids, 200), weights=np.full(200, 2.5, np.float32)),
        "n:to:m": Edges(src=random.choice(ids, 400), dst=random.integers(0, 20, 400), weights=random.random(400).astype(np.float32)),
        "m:fro:n": Edges(src=random.integers(0, 20, 400), dst=random.choice(ids, 400), weights=random.random(400).astype(np.float32)),
    }
    return version_of(schema, {"n": Nodes(ids=ids, dense=True if form == "holes" else None), "m": Nodes(ids=np.arange(20))}, edges), ids


def coin(seed: int, purpose: int, step: int, position: int) -> float:
    """In (0, 1), of a place in the request at a step."""
    own = np.uint64(rng.derive(rng.key_of(seed, purpose, step), np.uint64(position)))
    return float(rng.unit(np.uint64(rng.word(own, np.uint64(0)))))


class Definition:
    """What `draw.walk` has to say, one walk and one draw after another."""

    def __init__(self, version: draw.Version, rules: draw.Rules) -> None:
        self.version, self.rules, self.schema = version, rules, version.schema
        near_far = [(self.schema.node_type_id(edge.src_type), self.schema.node_type_id(edge.dst_type)) for edge in self.schema.edge_types]
        self.far = [ends[rules.direction == 1] for ends in near_far]

    def held(self, node: int) -> bool:
        """Whether a node's part is here."""
        return int(split.part_of(np.array([node]), PARTS, self.schema.placement)[0]) in self.version.parts

    def drawn(self, node: int, kind: int, step: int, position: int) -> tuple[int, int, int]:
        """A neighbor, the type of the edge to it, and its id; -1 where there is none."""
        edge_types = list(self.rules.steps[step % len(self.rules.steps)])
        found = draw.neighbors(
            self.version,
            edge_types=edge_types,
            node_type=-1,
            ids=np.array([node]),
            types=np.array([kind], np.int32),
            positions=np.array([position], np.uint64).view(np.int64),
            count=1,
            replace=True,
            uniform=self.rules.uniform,
            direction=self.rules.direction,
            seed=self.rules.seed,
            hop=step,
            want_weights=False,
            want_edge_ids=True,
        )
        assert found.eids is not None
        via = edge_types[0] if found.types is None else int(found.types[0, 0])
        return int(found.ids[0, 0]), via if found.ids[0, 0] >= 0 else -1, int(found.eids[0, 0])

    def joined(self, step: int, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether there is an edge between two nodes and their types, along those of a step."""
        edge_types = list(self.rules.steps[step % len(self.rules.steps)])
        kinds = {"kinds": np.array([one[1]], np.int32), "target_kinds": np.array([other[1]], np.int32)}
        ids = {"ids": np.array([one[0]]), "targets": np.array([other[0]])}
        return bool(draw.are_joined(self.version, edge_types=edge_types, direction=self.rules.direction, **ids, **kinds)[0])

    def row(self, node: int, kind: int, step: int) -> list[tuple[int, int, int, float]]:
        """All edges that a step may follow: neighbor, edge type, edge id, and what it counts."""
        found = draw.read_neighbors(
            self.version,
            edge_types=list(self.rules.steps[step % len(self.rules.steps)]),
            node_type=-1,
            ids=np.array([node]),
            types=np.array([kind], np.int32),
            direction=self.rules.direction,
            want_weights=True,
            want_edge_ids=True,
        )
        assert found.types is not None
        assert found.weights is not None
        assert found.eids is not None
        counts = np.ones(found.ids.size) if self.rules.uniform else found.weights.astype(np.float64)
        return list(zip(found.ids.tolist(), found.types.tolist(), found.eids.tolist(), counts.tolist(), strict=True))

    def beyond(self) -> float:
        """What the bias of a step back is above all others."""
        return max(1 / self.rules.p - max(1, 1 / self.rules.q), 0.0)

    def extra(self, node: int, kind: int, step: int) -> float:
        """What a row's tosses go on for behind those of other steps: as if all came from its heaviest neighbor by each edge type."""
        row, heaviest = self.row(node, kind, step), 0.0
        for edge_type in {edge[1] for edge in row}:
            mine = [edge for edge in row if edge[1] == edge_type]
            heaviest += max(sum(edge[3] for edge in mine if edge[0] == to) for to in {edge[0] for edge in mine})
        whole = sum(edge[3] for edge in row)
        return self.beyond() * heaviest / whole if whole else 0.0

    def returned(self, node: int, kind: int, step: int, came: tuple[int, int], toss: float) -> tuple[int, int, int]:
        """The edge back on which a toss falls; -1 where it falls on none."""
        row = self.row(node, kind, step)
        left = toss / self.beyond() * sum(edge[3] for edge in row)
        for to, via, eid, count in row:
            if (to, self.far[via]) == came:
                left -= count
                if left < 0:
                    return to, via, eid
        return -1, -1, -1

    def walk(self, node: int, position: int, step: int, start: int, before: int, attempt: int) -> tuple[list[tuple[int, int, int]], Any]:
        """Its steps here, of nodes of the first type; and the candidate and its attempt where it hangs on an edge elsewhere."""
        rules, kind, came, taken = self.rules, 0, (before, 0), []
        while node >= 0 and step < rules.length and self.held(node):
            if rules.restart and coin(rules.seed, rng.RESTART, step, position) < rules.restart:
                taken.append((start, -1, -1))
                node, kind, came, attempt, step = start, 0, (-1, -1), 0, step + 1
                continue
            found, via, eid = -1, -1, -1
            if not rules.biased or came[0] < 0:
                found, via, eid = self.drawn(node, kind, step, position)
            else:
                most = max(1, 1 / rules.q)
                while True:
                    at = int(rng.derive(np.uint64(rng.mix64(np.uint64(position))), np.uint64(attempt)))
                    toss = coin(rules.seed, rng.RETURN, step, at) * (most + self.extra(node, kind, step))
                    if toss >= most:
                        found, via, eid = self.returned(node, kind, step, came, toss - most)
                        if found >= 0:
                            break
                        attempt += 1
                        continue
                    found, via, eid = self.drawn(node, kind, step, at)
                    if found < 0 or (toss < min(1, 1 / rules.q) and (found, self.far[via]) != came):
                        break
                    if (found, self.far[via]) == came:
                        if toss < 1 / rules.p:
                            break
                    else:
                        if not self.held(came[0]):
                            return taken, (found, via, eid, attempt)
                        if toss < (1 if self.joined(step - 1, came, (found, self.far[via])) else 1 / rules.q):
                            break
                    attempt += 1
            taken.append((found, via, eid))
            came, attempt, step = (node, kind), 0, step + 1
            node, kind = found, self.far[via] if via >= 0 else -1
        return taken, None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("held", [range(PARTS), [0, 2]], ids=["all", "some"])
@pytest.mark.parametrize("steps", [[[HEAVY]], [[HEAVY, PLAIN, EVEN]], [[TO], [FRO]], [[HEAVY, TO], [FRO, EVEN, PLAIN]]], ids=str)
def test_walks_are_what_they_are_defined_as(form: str, held: Any, steps: list[list[int]]) -> None:
    whole, ids = graph(form)
    version = hosted(whole, list(held))
    starts = np.r_[np.random.default_rng(0).permutation(ids)[:24], -1, 3 * 10**12, ids[:9]].astype(np.int64)
    here = np.isin(split.part_of(starts, PARTS, whole.schema.placement), list(version.parts))
    m, zeros = starts.size, np.zeros(starts.size, np.int32)
    before = np.where(np.arange(m) % 7, np.roll(starts, 5), -1)
    places = draw.Places(
        ids=np.where(here, starts, -1),
        kinds=zeros,
        positions=np.arange(m) * 3,
        taken=(np.arange(m) % 3).astype(np.int32),
        starts=starts,
        start_kinds=zeros,
        before=before,
        before_kinds=zeros,
        attempts=np.arange(m) % 5,
    )
    hung = 0
    for (uniform, restart, (p, q), direction), number in zip(
        itertools.product((False, True), (0.0, 0.3), ((1.0, 1.0), (0.5, 2.0), (4.0, 0.25), (0.1, 0.5)), (1, 2)), itertools.count(), strict=False
    ):
        rules = draw.Rules(steps=steps, length=6, uniform=uniform, direction=direction, seed=number, restart=restart, p=p, q=q, want_edge_ids=True)
        walks, defined = draw.walk(version, rules, places), Definition(version, rules)
        types = walks.types
        assert (types is None) == (not restart and max(map(len, steps)) == 1)
        for i in range(m):
            taken, hanging = defined.walk(
                int(places.ids[i]), 3 * i, i % 3, int(starts[i]), int(before[i]), i % 5 if rules.biased and before[i] >= 0 else 0
            )
            own = slice(int(walks.indptr[i]), int(walks.indptr[i + 1]))
            assert walks.eids is not None
            assert walks.ids[own].tolist() == [step[0] for step in taken]
            assert types is None or types[own].tolist() == [step[1] for step in taken]
            assert walks.eids[own].tolist() == [step[2] for step in taken]
            if rules.biased:
                of = walks.open
                assert of is not None
                assert of.eids is not None
                assert bool(of.open[i]) == (hanging is not None)
                if hanging is not None:
                    assert (of.ids[i], of.types[i], of.eids[i], of.attempts[i]) == hanging
                    hung += 1
    assert (hung > 0) == (len(held) < PARTS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "more",
    [{}, {"p": 0.5, "q": 2.0}, {"restart": 0.3}, {"want_edge_ids": True}, {"p": 3.0, "q": 0.2, "restart": 0.2, "want_edge_ids": True}],
    ids=str,
)
@pytest.mark.parametrize("steps", [[[HEAVY]], [[TO], [FRO]], [[HEAVY, PLAIN]]], ids=str)
def test_whole_walks_are_their_steps_behind_where_they_begin(form: str, more: dict[str, Any], steps: list[list[int]]) -> None:
    version, ids = graph(form)
    starts = np.r_[ids[:40], -1, 3 * 10**12, ids[-9:]].astype(np.int64)
    kinds, m, length = np.zeros(starts.size, np.int32), starts.size, 6
    rules = draw.Rules(steps=steps, length=length, uniform=False, direction=1, seed=5, **more)
    places = draw.Places.begun(starts, kinds, np.arange(m) * 7, rules)
    told, walks = draw.paths(version, rules, places), draw.walk(version, rules, places)
    assert (told.nodes[:, 0] == starts).all()
    for whole, pieces in ((told.nodes[:, 1:], walks.ids), (told.types, walks.types), (told.eids, walks.eids)):
        assert (whole is None) == (pieces is None)
        if whole is not None and pieces is not None:
            expected = np.full((m, length), -1, whole.dtype)
            for i, (low, high) in enumerate(itertools.pairwise(walks.indptr)):
                expected[i, : high - low] = pieces[low:high]
            np.testing.assert_array_equal(whole, expected)


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("held", [[0, 1, 2], [0, 2]], ids=str)
@pytest.mark.parametrize("steps", [[[HEAVY]], [[EVEN], [PLAIN]], [[TO], [FRO], [EVEN]]], ids=str)
def test_many_walks_go_together_whatever_is_behind_them(
    monkeypatch: pytest.MonkeyPatch, steps: list[list[int]], held: list[int], uniform: bool
) -> None:
    """More than are under way at a time, of all lengths and both types, and put aside every few steps: as one by one, which tells edges too."""
    monkeypatch.setattr(sys.modules[draw.walk.__module__], "_PACKED_ROUNDS", 3)
    version, ids = graph("mod")
    here, random, m, length = hosted(version, held), np.random.default_rng(2), 2000, 9
    starts = random.choice(ids, m).astype(np.int64)
    starts = np.where(np.isin(starts % PARTS, held), starts, starts // PARTS * PARTS)
    starts[::97] = -1
    rules = draw.Rules(steps=steps, length=length, uniform=uniform, direction=1, seed=8)
    for taken in (np.zeros(m, np.int32), random.integers(0, length + 1, m).astype(np.int32)):
        places = draw.Places(ids=starts, kinds=(random.random(m) < 0.1).astype(np.int32), positions=random.permutation(m), taken=taken)
        together, apart = draw.walk(here, rules, places), draw.walk(here, replace(rules, want_edge_ids=True), places)
        np.testing.assert_array_equal(together.indptr, apart.indptr)
        np.testing.assert_array_equal(together.ids, apart.ids)


def test_whole_walks_are_refused_where_not_all_is_held_or_too_much_is_asked() -> None:
    version, ids = graph("mod")
    rules = draw.Rules(steps=[[HEAVY]], length=3, uniform=False, direction=1, seed=1)
    begun = draw.Places.begun(ids[:3].astype(np.int64), np.zeros(3, np.int32), np.arange(3), rules)
    with pytest.raises(Unavailable, match="part 1"):
        draw.paths(hosted(version, [0, 2]), rules, begun)
    with pytest.raises(InvalidRequest, match="values in one answer"):
        draw.paths(version, replace(rules, length=1 << 31), begun)
    with pytest.raises(InvalidRequest, match="'positions'"):
        draw.paths(version, rules, replace(begun, positions=np.arange(2)))


def test_what_can_not_be_walked_is_refused() -> None:
    version, ids = graph("mod")
    good: dict[str, Any] = {"steps": [[HEAVY]], "length": 3, "uniform": False, "direction": 1, "seed": 1}
    zeros, far = np.zeros(3, np.int32), ids[:3].astype(np.int64)
    at = draw.Places(ids=far, kinds=zeros, positions=far, taken=zeros)

    def refused(error: type[AsterismError], words: str, rules: dict[str, Any], places: draw.Places = at, on: draw.Version = version) -> None:
        with pytest.raises(error, match=words):
            draw.walk(on, draw.Rules(**{**good, **rules}), places)

    refused(InvalidRequest, "edge type 9", {"steps": [[HEAVY], [9]]})
    refused(InvalidRequest, "given twice", {"steps": [[HEAVY, HEAVY]]})
    refused(InvalidRequest, "without starts", {"restart": 0.5})
    refused(InvalidRequest, "without before", {"p": 0.5})
    refused(InvalidRequest, "node type -1 without types", {}, draw.Places(ids=far, kinds=None, positions=far, taken=zeros))
    refused(InvalidRequest, "0 to 4; a walk of 3 steps", {}, draw.Places(ids=far, kinds=zeros, positions=far, taken=np.array([0, 1, 4], np.int32)))
    refused(InvalidRequest, "'positions'", {}, draw.Places(ids=far, kinds=zeros, positions=far[:2], taken=zeros))
    refused(Unavailable, "part 1", {}, at, hosted(version, [0, 2]))


def test_whoever_watches_the_clock_is_asked_in_between() -> None:
    version, ids = graph("mod")
    m = 20_000
    starts = np.resize(ids[20:], m).astype(np.int64)
    zeros = np.zeros(m, np.int32)
    # Steps back are a thousand times as likely as others: most attempts are refused.
    rules = draw.Rules(steps=[[PLAIN]], length=20, uniform=True, direction=1, seed=1, p=1e-3, q=1.0)
    places = draw.Places(ids=starts, kinds=zeros, positions=starts, taken=zeros, before=np.full(m, -1), before_kinds=zeros)

    class TimeIsUp(Exception):
        pass

    def late() -> None:
        raise TimeIsUp

    draw.walk(version, replace(rules, length=2), places)  # what is made of rows once looks at the clock, too
    with pytest.raises(TimeIsUp):
        draw.walk(version, rules, places, late)
