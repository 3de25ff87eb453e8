"""Checks of HGT sampling: every outcome of layers of two node types, by exact fractions.

They also check the budgets and that all edges among sampled nodes are returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
from tests.distributions.checks.basis import require, require_counts, require_independent
from tests.distributions.checks.hosts import edge_ends, request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism_graphkit.operators.hgt import BudgetTable
from asterism_graphkit.random import rng
from asterism_graphkit.relabel.relabel import Relabeling
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import hgt as hgt_operator
from graphd.operators import neighbor_reads
from storaged import sampling

Node = tuple[int, int]
"""A node: (type, id)."""
Order = tuple[Node, ...]
Outcome = tuple[Order, ...]
"""Sampled nodes of each layer: those of the first type in order of draws, then the second."""

NODES = (5, 4)
EDGES: Mapping[tuple[int, int, int], Sequence[tuple[int, int, float]]] = {
    (0, 0, 0): (
        (0, 1, 1.0),
        (0, 1, 2.0),
        (0, 2, 1.0),
        (0, 3, 0.0),
        (1, 0, 2.0),
        (1, 2, 1.0),
        (1, 4, 3.0),
        (2, 4, 1.0),
        (2, 3, 2.0),
        (4, 0, 0.0),
    ),
    (1, 0, 1): ((0, 0, 2.0), (0, 1, 1.0), (1, 1, 4.0), (1, 2, 1.0), (2, 3, 1.0), (2, 2, 0.5)),
    (2, 1, 0): ((0, 3, 1.0), (0, 2, 1.0), (1, 4, 2.0), (1, 2, 1.0), (2, 0, 1.0), (3, 1, 1.0)),
}
"""(source, destination, weight) by (edge type, source type, destination type).

The cases include parallel edges, zeros, and a node with edges of weight 0 only.
"""


def _order_probabilities(
    budget: Mapping[Node, Fraction], kind: int, count: int
) -> dict[Order, Fraction]:
    """Return the probability of every order of successive draws by squared budgets."""
    probabilities: dict[Order, Fraction] = {(): Fraction(1)}
    for _ in range(count):
        extended: dict[Order, Fraction] = {}
        for order, p in probabilities.items():
            remaining = {
                node: b * b
                for node, b in budget.items()
                if node[0] == kind and b and node not in order
            }
            for node, b in remaining.items():
                extended[(*order, node)] = p * b / sum(remaining.values())
            if not remaining:
                extended[order] = p
        probabilities = extended
    return probabilities


def _updated_budgets(
    budget: Mapping[Node, Fraction], sampled: frozenset[Node], new_nodes: Order, *, uniform: bool
) -> dict[Node, Fraction]:
    """Return the budgets after the nodes of a layer have contributed."""
    updated = {node: b for node, b in budget.items() if node not in sampled}
    for kind, node in new_nodes:
        for (_, src, dst), rows in EDGES.items():
            edges = [
                (b, Fraction(1 if uniform else w)) for a, b, w in rows if (src, a) == (kind, node)
            ]
            total = sum(w for _, w in edges)
            for b, w in edges:
                if total and (dst, b) not in sampled:
                    updated[dst, b] = updated.get((dst, b), Fraction(0)) + w / total
    return updated


def outcome_probabilities(
    seeds: Order, counts: Sequence[Sequence[int]], *, uniform: bool
) -> dict[Outcome, float]:
    """Return the probability of every outcome."""
    states = [
        (
            (),
            Fraction(1),
            _updated_budgets({}, frozenset(seeds), seeds, uniform=uniform),
            frozenset(seeds),
        )
    ]
    for layer in zip(*counts, strict=True):
        next_states = []
        for outcome, p, budget, sampled in states:
            for (first, q), (second, r) in product(
                *(
                    _order_probabilities(budget, kind, count).items()
                    for kind, count in enumerate(layer)
                )
            ):
                layer_nodes, all_sampled = first + second, sampled | frozenset(first + second)
                next_states.append(
                    (
                        (*outcome, layer_nodes),
                        p * q * r,
                        _updated_budgets(budget, all_sampled, layer_nodes, uniform=uniform),
                        all_sampled,
                    )
                )
        states = next_states
    probabilities: dict[Outcome, float] = {}
    for outcome, p, _, _ in states:
        probabilities[outcome] = probabilities.get(outcome, 0.0) + float(p)
    return probabilities


@cache
def sample_graph() -> sampling.LocalVersion:
    names = ("a", "b")
    types = tuple(
        EdgeType(src_type=names[src], relation=f"e{number}", dst_type=names[dst], weighted=True)
        for number, src, dst in EDGES
    )
    edges = {}
    for edge, rows in zip(types, EDGES.values(), strict=True):
        src, dst, weights = zip(*rows, strict=True)
        edges[edge.name] = Edges(
            src=np.array(src), dst=np.array(dst), weights=np.array(weights, np.float32)
        )
    schema = Schema(
        node_types=tuple(NodeType(name=name) for name in names), edge_types=types, parts=3
    )
    return version_of(
        schema,
        {name: Nodes(ids=np.arange(size)) for name, size in zip(names, NODES, strict=True)},
        edges,
    )


EDGE_PARAMS = neighbor_reads.EdgeReadParams(
    edge_types=(2, 0, 1), direction=common_pb.OUT, want_weights=False, want_edge_ids=True, sort=""
)
FEW_EDGES = replace(EDGE_PARAMS, edge_types=(0,))
"""For checks of nodes only: every call returns the edges of one type at least."""
HGT_PARAMS = hgt_operator.HgtParams(
    edge_types=(0, 1, 2),
    counts={0: (2, 1), 1: (1, 2)},
    layer_count=2,
    uniform=False,
    direction=common_pb.OUT,
    seed=0,
)


def _outcome(reply: Mapping[str, np.ndarray]) -> Outcome:
    """Return the layers of a reply."""
    ends = np.cumsum(reply["node_counts"], axis=1)
    layers = range(1, ends.shape[1])
    return tuple(
        tuple(
            (kind, node)
            for kind in (0, 1)
            for node in reply[f"nodes.{kind}"][ends[kind, layer - 1] : ends[kind, layer]].tolist()
        )
        for layer in layers
    )


def _trials(
    params: hgt_operator.HgtParams,
    seeds: Order,
    n: int,
    edge_params: neighbor_reads.EdgeReadParams = EDGE_PARAMS,
) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the replies for seeds 0 .. n - 1; every 50th equals that of three hosts."""
    nodes, types = (
        np.array([node for _, node in seeds], np.int64),
        np.array([kind for kind, _ in seeds], np.int32),
    )
    local, distributed = (request_context(sample_graph(), hosts) for hosts in (1, 3))
    for seed in range(n):
        seed_params = replace(params, seed=seed)
        is_compared = seed % 50 == 0
        own_params = EDGE_PARAMS if is_compared else edge_params
        reply = hgt_operator.sample_hgt(local, seed_params, own_params, nodes, -1, types)
        if is_compared:
            distributed_reply = hgt_operator.sample_hgt(
                distributed, seed_params, EDGE_PARAMS, nodes, -1, types
            )
            require(
                all(bool((reply[name] == distributed_reply[name]).all()) for name in reply),
                "hosts matter to budgets",
            )
        yield reply


def budget_layers_follow_their_distribution(scale: float) -> None:
    """Every outcome of two layers of two node types has its probability.

    Draws are weighted and uniform, from seeds of one type and of both.
    """
    n = int(max(250, 2000 * scale))
    for seeds, uniform in ((((0, 0),), False), (((0, 0),), True), (((1, 1), (0, 1)), False)):
        expected = outcome_probabilities(
            seeds, [HGT_PARAMS.counts[0], HGT_PARAMS.counts[1]], uniform=uniform
        )
        require(abs(sum(expected.values()) - 1) < 1e-12, "the expected distribution is wrong")
        observed = Counter(
            _outcome(reply)
            for reply in _trials(replace(HGT_PARAMS, uniform=uniform), seeds, n, FEW_EDGES)
        )
        label = f"layers by budgets from {seeds}, uniform={uniform}"
        impossible = set(observed) - set(expected)
        require(not impossible, f"{label}: {list(impossible)[:1]} is impossible")
        require_counts(
            [observed[outcome] for outcome in expected],
            np.array(list(expected.values())) * n,
            label,
        )
        # Rare outcomes are merged above; each layer and type is tested separately too.
        for layer, kind in product((0, 1), (0, 1)):
            expected_orders: dict[Order, float] = {}
            for outcome, p in expected.items():
                order = tuple(node for node in outcome[layer] if node[0] == kind)
                expected_orders[order] = expected_orders.get(order, 0.0) + p
            observed_orders = Counter(dict.fromkeys(expected_orders, 0))
            for outcome, repeats in observed.items():
                observed_orders[tuple(node for node in outcome[layer] if node[0] == kind)] += (
                    repeats
                )
            require_counts(
                [observed_orders[order] for order in expected_orders],
                np.array(list(expected_orders.values())) * n,
                f"{label}: layer {layer} of type {kind}",
            )


def budget_draws_follow_squared_budgets(scale: float) -> None:
    """Two draws of one table follow squared budgets, without the reads of a whole call.

    At full size there are 30,000 trials. A share of 3 % that goes to the most likely node is
    rejected then; trials of whole calls, which are few, show larger faults only.
    """
    n = int(max(600, 10_000 * scale))
    amounts = np.array([0.25, 0.75, 0.75, 1.0, 0.25, 0.5, 0.5])
    ids = np.array([11, 12, 11, 13, 14, 14, 15])
    budgets = {11: 1.0, 12: 0.75, 13: 1.0, 14: 0.75, 15: 0.5}
    squares = {node: Fraction(budget) ** 2 for node, budget in budgets.items()}
    total = sum(squares.values())
    expected = {
        (a, b): float(squares[a] / total * squares[b] / (total - squares[a]))
        for a in squares
        for b in squares
        if a != b
    }
    observed: Counter[tuple[int, ...]] = Counter()
    for seed in range(n):
        table = BudgetTable(Relabeling())
        table.add_seeds(np.array([10]))
        table.add_budgets(ids, amounts)
        observed[tuple(table.draw(rng.key_of(seed, rng.BUDGET, 0, 0), 2).tolist())] += 1
    require(set(observed) <= set(expected), "draws by budgets: something impossible was drawn")
    pairs = list(expected)
    require_counts(
        [observed[pair] for pair in pairs],
        np.array([expected[pair] for pair in pairs]) * n,
        "pairs of draws by budgets",
    )
    firsts = list(budgets)
    require_counts(
        [sum(count for pair, count in observed.items() if pair[0] == node) for node in firsts],
        np.array([float(squares[node] / total) for node in firsts]) * n,
        "first draws by budgets",
    )


def budget_layers_use_separate_streams(scale: float) -> None:
    """Draws of consecutive seeds and of node types are independent.

    Draws from one stream would be equal, which a hundred trials show. There are up to 4,000.
    """
    n = int(max(900, 4000 * min(scale, 1.0)))
    first_layers = [
        dict(enumerate(_outcome(reply)[0]))
        for reply in _trials(
            replace(HGT_PARAMS, counts={0: (1,), 1: (1,)}, layer_count=1, uniform=True),
            ((0, 0),),
            n,
            FEW_EDGES,
        )
    ]
    first_type, second_type = (
        np.array([layer[node_type][1] for layer in first_layers]) for node_type in (0, 1)
    )
    require_independent(first_type[:-1], first_type[1:], NODES[0], "seeds that follow each other")
    require_independent(first_type, second_type, NODES[0], "node types of a layer")


@cache
def forked_graph() -> sampling.LocalVersion:
    """Return a graph in which both layers have equal budgets.

    A node contributes to two nodes, each of which contributes to the same two others.
    """
    pairs = ((0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4))
    edge_type = EdgeType(src_type="a", relation="e", dst_type="a")
    schema = Schema(node_types=(NodeType(name="a"),), edge_types=(edge_type,), parts=3)
    ends = np.array(pairs)
    return version_of(
        schema,
        {"a": Nodes(ids=np.arange(5))},
        {edge_type.name: Edges(src=ends[:, 0], dst=ends[:, 1])},
    )


def nodes_not_drawn_stay_candidates_of_the_next_layer(scale: float) -> None:
    """The node that lost in the first layer is sampled fairly in the second.

    It has the same budget as two new nodes. With the same variates it would always lose again. With
    6,000 trials, a share that is off by 4 % of all is rejected.
    """
    n = int(max(600, 6000 * min(scale, 1.0)))
    params = replace(HGT_PARAMS, edge_types=(0,), counts={0: (1, 1)}, uniform=True)
    context = request_context(forked_graph(), 1)
    orders = [
        hgt_operator.sample_hgt(
            context,
            replace(params, seed=seed),
            FEW_EDGES,
            np.array([0]),
            0,
            None,
        )["nodes.0"].tolist()
        for seed in range(n)
    ]
    lost = sum(last == 3 - first for _, first, last in orders)
    observed = [lost, *(sum(last == node for _, _, last in orders) for node in (3, 4))]
    require_counts(
        observed, np.full(3, n / 3), "what lost in the first layer, and what came in the second"
    )


def budget_layers_have_all_edges_among_their_nodes(scale: float) -> None:
    """Every edge of each type among the sampled nodes is returned, with its id.

    The first nodes of a larger request equal a smaller request.
    """
    for reply in _trials(HGT_PARAMS, ((0, 0), (1, 3)), int(max(20, 200 * scale))):
        sampled = [set(reply[f"nodes.{kind}"].tolist()) for kind in (0, 1)]
        for (edge_type, src, dst), rows in EDGES.items():
            expected = sorted(
                (a, b, eid)
                for eid, (a, b, _) in enumerate(rows)
                if a in sampled[src] and b in sampled[dst]
            )
            rows, cols = edge_ends(reply, edge_type)
            ends = reply[f"nodes.{src}"][rows].tolist(), reply[f"nodes.{dst}"][cols].tolist()
            edges = sorted(zip(*ends, reply[f"eids.{edge_type}"].tolist(), strict=True))
            require(
                edges == expected,
                f"edges of type {edge_type} are {edges}, not all {expected} among the nodes",
            )
    more_params, fewer_params = (
        replace(HGT_PARAMS, counts={0: (2, 3), 1: (1, 2)}),
        replace(HGT_PARAMS, counts={0: (2, 1), 1: (1, 1)}),
    )
    pairs = zip(
        _trials(more_params, ((0, 0),), 20), _trials(fewer_params, ((0, 0),), 20), strict=True
    )
    for outcomes in ((_outcome(many), _outcome(few)) for many, few in pairs):
        for kind, count in ((0, 1), (1, 1)):
            many, few = ([node for node in outcome[1] if node[0] == kind] for outcome in outcomes)
            require(many[:count] == few, "the first of many are not the request for fewer")
