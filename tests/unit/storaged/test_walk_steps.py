"""Tests of walks against their definition.

A step samples one neighbor for the walk's position; with p and q, one candidate after another.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.kit import reference
from tests.kit.images import Edges, Nodes, restrict_to_parts, version_of

from asterism_graphkit.random import partition_choice, rng
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import AsterismError, InvalidRequest, Unavailable
from storaged import sampling

FORMS = ["mod", "mix64", "sparse", "holes"]
PARTS = 3
HEAVY, PLAIN, EVEN, TO, FRO = range(5)


def graph(form: str) -> tuple[sampling.LocalVersion, np.ndarray[Any, np.dtype[np.int64]]]:
    """Return two node types; rows have few or many edges, zero weights only, or none."""
    random = np.random.default_rng(len(form))
    relations = [
        ("n", "heavy", "n", True),
        ("n", "plain", "n", False),
        ("n", "even", "n", True),
        ("n", "to", "m", True),
        ("m", "fro", "n", True),
    ]
    schema = Schema(
        node_types=(NodeType(name="n"), NodeType(name="m")),
        edge_types=tuple(
            EdgeType(src_type=src, relation=name, dst_type=dst, weighted=weighted)
            for src, name, dst, weighted in relations
        ),
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
            src=src,
            dst=random.choice(ids[:30], 1200),
            weights=weights.astype(np.float32),
            eids=random.permutation(9000)[:1200].astype(np.int64),
        ),
        "n:plain:n": Edges(src=random.choice(ids, 800), dst=random.choice(ids[:25], 800)),
        "n:even:n": Edges(
            src=random.choice(ids, 200),
            dst=random.choice(ids, 200),
            weights=np.full(200, 2.5, np.float32),
        ),
        "n:to:m": Edges(
            src=random.choice(ids, 400),
            dst=random.integers(0, 20, 400),
            weights=random.random(400).astype(np.float32),
        ),
        "m:fro:n": Edges(
            src=random.integers(0, 20, 400),
            dst=random.choice(ids, 400),
            weights=random.random(400).astype(np.float32),
        ),
    }
    return version_of(
        schema,
        {
            "n": Nodes(ids=ids, dense=True if form == "holes" else None),
            "m": Nodes(ids=np.arange(20)),
        },
        edges,
    ), ids


def coin(seed: int, purpose: int, step: int, tag: int) -> float:
    """Return a number in (0, 1) for the tag of a node at a step."""
    key = reference.derive_mixed(reference.key_of(seed, purpose, step), tag)
    return reference.unit_float(reference.word(key, 0))


class WalkReference:
    """Reference of `draw.walk`, one walk and one draw after another."""

    def __init__(self, version: sampling.LocalVersion, spec: sampling.WalkSpec) -> None:
        self.version, self.spec, self.schema = version, spec, version.schema
        end_types = [
            (self.schema.node_type_id(edge.src_type), self.schema.node_type_id(edge.dst_type))
            for edge in self.schema.edge_types
        ]
        self.remote_types = [pair[spec.direction == 1] for pair in end_types]

    def step_seed(self, step: int) -> int:
        """Return the seed of a step, which depends on its edge types in any order."""
        edge_types = sorted(self.spec.steps[step % len(self.spec.steps)])
        return reference.key_of(self.spec.seed, rng.STEP_TYPES, *edge_types)

    def is_local(self, node: int) -> bool:
        """Return whether a node's partition is local."""
        return (
            int(partition_choice.part_of(np.array([node]), PARTS, self.schema.placement)[0])
            in self.version.parts
        )

    def sample_neighbor(
        self, node: int, node_type: int, step: int, position: int
    ) -> tuple[int, int, int]:
        """Return a neighbor, the type of the edge to it, and its id; -1 if there is none."""
        edge_types = list(self.spec.steps[step % len(self.spec.steps)])
        sampled = sampling.sample_neighbors(
            self.version,
            edge_types=edge_types,
            node_type=-1,
            ids=np.array([node]),
            types=np.array([node_type], np.int32),
            positions=np.array([position], np.uint64).view(np.int64),
            count=1,
            replace=True,
            uniform=self.spec.uniform,
            direction=self.spec.direction,
            seed=self.step_seed(step),
            hop=step,
            want_weights=False,
            want_edge_ids=True,
        )
        assert sampled.eids is not None
        edge_type = edge_types[0] if sampled.types is None else int(sampled.types[0, 0])
        return (
            int(sampled.ids[0, 0]),
            edge_type if sampled.ids[0, 0] >= 0 else -1,
            int(sampled.eids[0, 0]),
        )

    def has_edge(self, step: int, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Return whether two typed nodes are joined by an edge along those of a step."""
        edge_types = list(self.spec.steps[step % len(self.spec.steps)])
        types = {
            "kinds": np.array([one[1]], np.int32),
            "target_kinds": np.array([other[1]], np.int32),
        }
        ids = {"ids": np.array([one[0]]), "targets": np.array([other[0]])}
        return bool(
            sampling.has_edge(
                self.version, edge_types=edge_types, direction=self.spec.direction, **ids, **types
            )[0]
        )

    def row(self, node: int, node_type: int, step: int) -> list[tuple[int, int, int, float]]:
        """Return all edges that a step may follow: neighbor, edge type, edge id, and measure."""
        neighbors = sampling.read_neighbors(
            self.version,
            edge_types=list(self.spec.steps[step % len(self.spec.steps)]),
            node_type=-1,
            ids=np.array([node]),
            types=np.array([node_type], np.int32),
            direction=self.spec.direction,
            want_weights=True,
            want_edge_ids=True,
        )
        assert neighbors.types is not None
        assert neighbors.weights is not None
        assert neighbors.eids is not None
        counts = (
            np.ones(neighbors.ids.size)
            if self.spec.uniform
            else neighbors.weights.astype(np.float64)
        )
        return list(
            zip(
                neighbors.ids.tolist(),
                neighbors.types.tolist(),
                neighbors.eids.tolist(),
                counts.tolist(),
                strict=True,
            )
        )

    def excess_return_bias(self) -> float:
        """Return the excess of the return bias over all others."""
        return max(1 / self.spec.p - max(1, 1 / self.spec.q), 0.0)

    def extra_return_bias(self, node: int, node_type: int, step: int) -> float:
        """Return the extra range of a row's tosses for steps back.

        It is computed as if all of them led to its heaviest neighbor by each edge type.
        """
        row, heaviest = self.row(node, node_type, step), 0.0
        for edge_type in {edge[1] for edge in row}:
            same_type = [edge for edge in row if edge[1] == edge_type]
            heaviest += max(
                sum(edge[3] for edge in same_type if edge[0] == to)
                for to in {edge[0] for edge in same_type}
            )
        total = sum(edge[3] for edge in row)
        return self.excess_return_bias() * heaviest / total if total else 0.0

    def return_edge(
        self, node: int, node_type: int, step: int, previous: tuple[int, int], toss: float
    ) -> tuple[int, int, int]:
        """Return the edge back that a toss selects; -1 if none."""
        row = self.row(node, node_type, step)
        remaining = toss / self.excess_return_bias() * sum(edge[3] for edge in row)
        for to, edge_type, eid, count in row:
            if (to, self.remote_types[edge_type]) == previous:
                remaining -= count
                if remaining < 0:
                    return to, edge_type, eid
        return -1, -1, -1

    def walk(
        self, node: int, position: int, step: int, start: int, previous_node: int, attempt: int
    ) -> tuple[list[tuple[int, int, int]], Any]:
        """Return the local steps of a walk, and its pending candidate and attempt.

        Steps are of nodes of the first type. A walk is pending if it needs an edge elsewhere.
        """
        spec, node_type, previous, steps = self.spec, 0, (previous_node, 0), []
        while node >= 0 and step < spec.length and self.is_local(node):
            walk_tag = reference.node_tag(position, node, 0)
            seed = self.step_seed(step)
            if spec.restart and coin(seed, rng.RESTART, step, walk_tag) < spec.restart:
                steps.append((start, -1, -1))
                node, node_type, previous, attempt, step = start, 0, (-1, -1), 0, step + 1
                continue
            neighbor, edge_type, eid = -1, -1, -1
            if not spec.is_biased or previous[0] < 0:
                neighbor, edge_type, eid = self.sample_neighbor(node, node_type, step, position)
            else:
                max_bias = max(1, 1 / spec.q)
                while True:
                    draw_position = int(
                        rng.derive(np.uint64(rng.mix64(np.uint64(position))), np.uint64(attempt))
                    )
                    draw_tag = reference.node_tag(draw_position, node, node_type)
                    toss = coin(seed, rng.RETURN, step, draw_tag) * (
                        max_bias + self.extra_return_bias(node, node_type, step)
                    )
                    if toss >= max_bias:
                        neighbor, edge_type, eid = self.return_edge(
                            node, node_type, step, previous, toss - max_bias
                        )
                        if neighbor >= 0:
                            break
                        attempt += 1
                        continue
                    neighbor, edge_type, eid = self.sample_neighbor(
                        node, node_type, step, draw_position
                    )
                    if neighbor < 0 or (
                        toss < min(1, 1 / spec.q)
                        and (neighbor, self.remote_types[edge_type]) != previous
                    ):
                        break
                    if (neighbor, self.remote_types[edge_type]) == previous:
                        if toss < 1 / spec.p:
                            break
                    else:
                        if not self.is_local(previous[0]):
                            return steps, (neighbor, edge_type, eid, attempt)
                        if toss < (
                            1
                            if self.has_edge(
                                step - 1, previous, (neighbor, self.remote_types[edge_type])
                            )
                            else 1 / spec.q
                        ):
                            break
                    attempt += 1
            steps.append((neighbor, edge_type, eid))
            previous, attempt, step = (node, node_type), 0, step + 1
            node, node_type = neighbor, self.remote_types[edge_type] if edge_type >= 0 else -1
        return steps, None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("held", [range(PARTS), [0, 2]], ids=["all", "some"])
@pytest.mark.parametrize(
    "steps",
    [[[HEAVY]], [[HEAVY, PLAIN, EVEN]], [[TO], [FRO]], [[HEAVY, TO], [FRO, EVEN, PLAIN]]],
    ids=str,
)
def test_walks_match_their_reference(form: str, held: Any, steps: list[list[int]]) -> None:
    full_version, ids = graph(form)
    version = restrict_to_parts(full_version, list(held))
    starts = np.r_[np.random.default_rng(0).permutation(ids)[:24], -1, 3 * 10**12, ids[:9]].astype(
        np.int64
    )
    is_local = np.isin(
        partition_choice.part_of(starts, PARTS, full_version.schema.placement), list(version.parts)
    )
    m, zeros = starts.size, np.zeros(starts.size, np.int32)
    previous_nodes = np.where(np.arange(m) % 7, np.roll(starts, 5), -1)
    state = sampling.WalkState(
        ids=np.where(is_local, starts, -1),
        kinds=zeros,
        positions=np.arange(m) * 3,
        taken=(np.arange(m) % 3).astype(np.int32),
        starts=starts,
        start_kinds=zeros,
        before=previous_nodes,
        before_kinds=zeros,
        attempts=np.arange(m) % 5,
    )
    pending_count = 0
    for (uniform, restart, (p, q), direction), number in zip(
        itertools.product(
            (False, True), (0.0, 0.3), ((1.0, 1.0), (0.5, 2.0), (4.0, 0.25), (0.1, 0.5)), (1, 2)
        ),
        itertools.count(),
        strict=False,
    ):
        spec = sampling.WalkSpec(
            steps=steps,
            length=6,
            uniform=uniform,
            direction=direction,
            seed=number,
            restart=restart,
            p=p,
            q=q,
            want_edge_ids=True,
        )
        walks, reference = (
            sampling.continue_walks(version, spec, state),
            WalkReference(version, spec),
        )
        types = walks.types
        assert (types is None) == (not restart and max(map(len, steps)) == 1)
        for i in range(m):
            expected_steps, expected_pending = reference.walk(
                int(state.ids[i]),
                3 * i,
                i % 3,
                int(starts[i]),
                int(previous_nodes[i]),
                i % 5 if spec.is_biased and previous_nodes[i] >= 0 else 0,
            )
            walk_slice = slice(int(walks.indptr[i]), int(walks.indptr[i + 1]))
            assert walks.eids is not None
            assert walks.ids[walk_slice].tolist() == [step[0] for step in expected_steps]
            assert types is None or types[walk_slice].tolist() == [
                step[1] for step in expected_steps
            ]
            assert walks.eids[walk_slice].tolist() == [step[2] for step in expected_steps]
            if spec.is_biased:
                pending = walks.pending
                assert pending is not None
                assert pending.eids is not None
                assert bool(pending.is_pending[i]) == (expected_pending is not None)
                if expected_pending is not None:
                    assert (
                        pending.ids[i],
                        pending.types[i],
                        pending.eids[i],
                        pending.attempts[i],
                    ) == expected_pending
                    pending_count += 1
    assert (pending_count > 0) == (len(held) < PARTS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"p": 0.5, "q": 2.0},
        {"restart": 0.3},
        {"want_edge_ids": True},
        {"p": 3.0, "q": 0.2, "restart": 0.2, "want_edge_ids": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("steps", [[[HEAVY]], [[TO], [FRO]], [[HEAVY, PLAIN]]], ids=str)
def test_paths_are_starts_followed_by_their_steps(
    form: str, more: dict[str, Any], steps: list[list[int]]
) -> None:
    version, ids = graph(form)
    starts = np.r_[ids[:40], -1, 3 * 10**12, ids[-9:]].astype(np.int64)
    kinds, m, length = np.zeros(starts.size, np.int32), starts.size, 6
    spec = sampling.WalkSpec(steps=steps, length=length, uniform=False, direction=1, seed=5, **more)
    state = sampling.WalkState.at_start(starts, kinds, np.arange(m) * 7, spec)
    paths, walks = (
        sampling.sample_paths(version, spec, state),
        sampling.continue_walks(version, spec, state),
    )
    assert (paths.nodes[:, 0] == starts).all()
    for path_column, step_column in (
        (paths.nodes[:, 1:], walks.ids),
        (paths.types, walks.types),
        (paths.eids, walks.eids),
    ):
        assert (path_column is None) == (step_column is None)
        if path_column is not None and step_column is not None:
            expected = np.full((m, length), -1, path_column.dtype)
            for i, (low, high) in enumerate(itertools.pairwise(walks.indptr)):
                expected[i, : high - low] = step_column[low:high]
            np.testing.assert_array_equal(path_column, expected)


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("held", [[0, 1, 2], [0, 2]], ids=str)
@pytest.mark.parametrize("steps", [[[HEAVY]], [[EVEN], [PLAIN]], [[TO], [FRO], [EVEN]]], ids=str)
def test_packed_walks_match_separate_walks(
    monkeypatch: pytest.MonkeyPatch, steps: list[list[int]], held: list[int], uniform: bool
) -> None:
    """Many walks of all lengths and both types match single walks.

    There are more than are processed at a time, and they are suspended every few steps. Single
    walks also return edges.
    """
    monkeypatch.setattr(sys.modules[sampling.continue_walks.__module__], "_PACKED_ROUNDS", 3)
    version, ids = graph("mod")
    local_version, random, m, length = (
        restrict_to_parts(version, held),
        np.random.default_rng(2),
        2000,
        9,
    )
    starts = random.choice(ids, m).astype(np.int64)
    starts = np.where(np.isin(starts % PARTS, held), starts, starts // PARTS * PARTS)
    starts[::97] = -1
    spec = sampling.WalkSpec(steps=steps, length=length, uniform=uniform, direction=1, seed=8)
    for steps_done in (np.zeros(m, np.int32), random.integers(0, length + 1, m).astype(np.int32)):
        state = sampling.WalkState(
            ids=starts,
            kinds=(random.random(m) < 0.1).astype(np.int32),
            positions=random.permutation(m),
            taken=steps_done,
        )
        packed, separate = (
            sampling.continue_walks(local_version, spec, state),
            sampling.continue_walks(local_version, replace(spec, want_edge_ids=True), state),
        )
        np.testing.assert_array_equal(packed.indptr, separate.indptr)
        np.testing.assert_array_equal(packed.ids, separate.ids)


def test_paths_of_missing_parts_or_excessive_size_are_refused() -> None:
    version, ids = graph("mod")
    spec = sampling.WalkSpec(steps=[[HEAVY]], length=3, uniform=False, direction=1, seed=1)
    state = sampling.WalkState.at_start(
        ids[:3].astype(np.int64), np.zeros(3, np.int32), np.arange(3), spec
    )
    with pytest.raises(Unavailable, match="part 1"):
        sampling.sample_paths(restrict_to_parts(version, [0, 2]), spec, state)
    with pytest.raises(InvalidRequest, match="values in one reply"):
        sampling.sample_paths(version, replace(spec, length=1 << 31), state)
    with pytest.raises(InvalidRequest, match="'positions'"):
        sampling.sample_paths(version, spec, replace(state, positions=np.arange(2)))


def test_invalid_walks_are_refused() -> None:
    version, ids = graph("mod")
    valid: dict[str, Any] = {
        "steps": [[HEAVY]],
        "length": 3,
        "uniform": False,
        "direction": 1,
        "seed": 1,
    }
    zeros, node_ids = np.zeros(3, np.int32), ids[:3].astype(np.int64)
    valid_state = sampling.WalkState(ids=node_ids, kinds=zeros, positions=node_ids, taken=zeros)

    def assert_refused(
        error: type[AsterismError],
        message: str,
        changes: dict[str, Any],
        state: sampling.WalkState = valid_state,
        graph_version: sampling.LocalVersion = version,
    ) -> None:
        with pytest.raises(error, match=message):
            sampling.continue_walks(graph_version, sampling.WalkSpec(**{**valid, **changes}), state)

    assert_refused(InvalidRequest, "edge type 9", {"steps": [[HEAVY], [9]]})
    assert_refused(InvalidRequest, "expected each edge type once", {"steps": [[HEAVY, HEAVY]]})
    assert_refused(InvalidRequest, "starts: required with restart", {"restart": 0.5})
    assert_refused(InvalidRequest, "before: required with p or q", {"p": 0.5})
    assert_refused(
        InvalidRequest,
        "node type -1 without types",
        {},
        sampling.WalkState(ids=node_ids, kinds=None, positions=node_ids, taken=zeros),
    )
    assert_refused(
        InvalidRequest,
        "expected 0 to 3 steps of a walk, found 0 to 4",
        {},
        sampling.WalkState(
            ids=node_ids, kinds=zeros, positions=node_ids, taken=np.array([0, 1, 4], np.int32)
        ),
    )
    assert_refused(
        InvalidRequest,
        "'positions'",
        {},
        sampling.WalkState(ids=node_ids, kinds=zeros, positions=node_ids[:2], taken=zeros),
    )
    assert_refused(Unavailable, "part 1", {}, valid_state, restrict_to_parts(version, [0, 2]))


def test_checkpoint_is_called_during_a_walk() -> None:
    version, ids = graph("mod")
    m = 20_000
    starts = np.resize(ids[20:], m).astype(np.int64)
    zeros = np.zeros(m, np.int32)
    # Steps back are a thousand times as likely as others: most attempts are rejected.
    spec = sampling.WalkSpec(
        steps=[[PLAIN]], length=20, uniform=True, direction=1, seed=1, p=1e-3, q=1.0
    )
    state = sampling.WalkState(
        ids=starts,
        kinds=zeros,
        positions=starts,
        taken=zeros,
        before=np.full(m, -1),
        before_kinds=zeros,
    )

    class TimeIsUp(Exception):
        pass

    def raise_time_is_up() -> None:
        raise TimeIsUp

    sampling.continue_walks(
        version, replace(spec, length=2), state
    )  # data computed once per row checks the clock, too
    with pytest.raises(TimeIsUp):
        sampling.continue_walks(version, spec, state, raise_time_is_up)
