"""Faults of the keys of calls: draws of different calls with one seed that move together."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

SEEDS = "graphd.operators.call_seeds"
RNG = "asterism_graphkit.random.rng"
WALKS = "storaged.sampling.walks.random_walks"
SUBGRAPHS = "graphd.api.subgraphs"
FIELDS = (
    "fields = struct.pack(f'<{5 + len(type_ids)}q', operator, weighted, direction, len(name), "
    "len(type_ids), *type_ids)"
)
OFFSET = "return np.uint64(node) * GOLDEN + np.uint64(node_type) * _TYPE_STEP"
CHECK = "calls_with_one_seed_are_independent"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "negatives are the nodes of the same seed",
        "earlier keys",
        SEEDS,
        (FIELDS, FIELDS.replace("operator, weighted", "0, weighted")),
        check=CHECK,
    ),
    change(
        "types move together",
        "earlier keys",
        SEEDS,
        (
            "type_ids, name = (sorted(set(types)), weights.encode())",
            "type_ids, name = ([], weights.encode())",
        ),
        check=CHECK,
    ),
    change(
        "uniform draws move with weighted ones",
        "earlier keys",
        SEEDS,
        (FIELDS, FIELDS.replace("operator, weighted", "operator, True")),
        check=CHECK,
    ),
    change(
        "directions move together",
        "earlier keys",
        SEEDS,
        (FIELDS, FIELDS.replace("weighted, direction", "weighted, 0")),
        check=CHECK,
    ),
    change(
        "tables of weights move together",
        "tempting",
        SEEDS,
        (
            "type_ids, name = (sorted(set(types)), weights.encode())",
            "type_ids, name = (sorted(set(types)), b'')",
        ),
        check=CHECK,
    ),
    change(
        "filtered draws move with all",
        "tempting",
        SEEDS,
        (
            "blake2b(fields + name + where.encode(), digest_size=8)",
            "blake2b(fields + name, digest_size=8)",
        ),
        check=CHECK,
    ),
    change(
        "nodes at one position draw the same slots",
        "earlier keys",
        RNG,
        (OFFSET, OFFSET.replace("np.uint64(node) * GOLDEN", "np.uint64(0)")),
        check=CHECK,
    ),
    change(
        "equal ids of two types draw the same slots",
        "tempting",
        RNG,
        (OFFSET, OFFSET.replace("np.uint64(node_type) * _TYPE_STEP", "np.uint64(0)")),
        check=CHECK,
    ),
    change(
        "nodes like others move together by type",
        "earlier keys",
        RNG,
        ("return int(key_of(seed, NODE_TYPE, node_type))", "return int(key_of(seed, NODE_TYPE))"),
        check=CHECK,
    ),
    change(
        "steps along all edge types move together",
        "earlier keys",
        WALKS,
        (
            "return int(rng.key_of(seed, rng.STEP_TYPES, *sorted(edge_types)))",
            "return int(rng.key_of(seed, rng.STEP_TYPES))",
        ),
        check=CHECK,
    ),
    change(
        "different first steps move together by edge type",
        "tempting",
        SEEDS,
        (
            "return int(rng.key_of(seed, rng.FIRST_STEP, *sorted(set(edge_types))))",
            "return int(rng.key_of(seed, rng.FIRST_STEP))",
        ),
        check=CHECK,
    ),
    change(
        "steps of a statement move together",
        "tempting",
        SEEDS,
        (
            "return seed if step == 1 else int(rng.key_of(seed, rng.STATEMENT_STEP, step))",
            "return seed",
        ),
        check=CHECK,
    ),
    change(
        "budgets along all edge types move together",
        "earlier keys",
        SUBGRAPHS,
        (
            "seed=decode_seed(head, Operator.HGT, types=edge_types, direction=direction)",
            "seed=decode_seed(head, Operator.HGT, direction=direction)",
        ),
        check="single_draws_with_one_seed_are_independent",
    ),
)
