"""Faults of different neighbors, probabilities, rows of draws by number, layers and labels."""

from __future__ import annotations

from tests.law.faults import Mutant, change

DIFFERENT, UNION = "storaged.kernel.different", "storaged.kernel.union"
PROBABILITY, EXCLUDING = "storaged.kernel.probability", "graphkit.excluding"
NUMBERED, LAYERS = "graphd.numbered", "graphkit.layers"
GROWTH, WALK, STEPS = "graphkit.growth", "graphd.walk", "storaged.draw.walk"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "parallel edges as neighbors of their own",
        "PGL",
        DIFFERENT,
        ("spot(marks, np.int64(nbr[slot]), shift)", "spot(marks, slot, shift)"),
    ),
    change("the first of parallel edges for all", "tempting", DIFFERENT, ("                if at < first:", "                if first == np.inf:")),
    change(
        "drawn neighbors race again",
        "classic",
        DIFFERENT,
        (" and marks[spot(marks, node, shift)] < 0:", ":"),
    ),
    change("zero weight picked, different neighbors", "cuGraph #4607", DIFFERENT, ("if weight > 0.0:", "if (weight := max(weight, 0.5)) > 0.0:")),
    change("alias swapped, different neighbors", "classic", DIFFERENT, ("if high > threshold or", "if high < threshold or")),
    change("unconditional without replacement", "tempting", "storaged.draw.probability", ("    if replace:\n", "    if True:\n")),
    change(
        "the same, globally", "tempting", "graphkit.successive", ("out[k] = min(shares[k] / (high + low), 1.0)", "out[k] = shares[k] / shares.sum()")
    ),
    change("what is left by subtraction only", "tempting", PROBABILITY, ("if rests[i] < LEAST * totals[i]:", "if rests[i] < 0.0:")),
    change(
        "drawn edges left in the rest",
        "classic",
        PROBABILITY,
        ("if met < size and drawn[met] == slot:", "if met < size and drawn[size - 1] == slot:"),
    ),
    change(
        "whole rows with probabilities of draws",
        "tempting",
        PROBABILITY,
        ("1.0 if degrees[i] <= count else min(weight / (high + low), 1.0)", "min(weight / (high + low), 1.0)"),
    ),
    change(
        "probabilities within a union's type",
        "many",
        "storaged.draw.neighbor",
        (
            "totals=settled(_sums(rows, sides, uniform=law.uniform))",
            "totals=settled(_sums(rows, sides[:1], uniform=law.uniform))",
        ),
    ),
    change(
        "probabilities within a part",
        "many",
        "storaged.draw.node",
        ("shares_of(decisive, of_entry, rows, entries.shares.total)", "shares_of(decisive, of_entry, rows, float(entries.shares.measure[0]))"),
    ),
    change("positives among negatives", "many", NUMBERED, ("if excluded is not None and excluded.ids.size:", "if False:")),
    change("one more try, whatever comes of it", "tempting", NUMBERED, ("free = ~excluded.refused(", "free = True | excluded.refused(")),
    change(
        "further attempts shared by all draws",
        "tempting",
        NUMBERED,
        ("(pending[:, None] * ATTEMPTS + attempt + np.arange(together))", "(pending[:, None] * 0 + attempt + np.arange(together))"),
    ),
    change("negatives given up after many attempts", "tempting", NUMBERED, ("for place in pending.tolist():", "for place in []:")),
    change(
        "draws by number keyed by their place",
        "tempting",
        "storaged.draw.numbered",
        ("numbers=numbers[at], uniform", "numbers=at, uniform"),
    ),
    change("rows of one type alike", "Euler", NUMBERED, ("(rows[:, None] * n + np.arange(n))", "(rows[:, None] * 0 + np.arange(n))")),
    change("a layer's candidates alike", "many", LAYERS, ("np.float64(weights[e]) if weights.shape[0] > 0 else 1.0", "1.0")),
    change("squares of edges, not of nodes", "tempting", LAYERS, ("if row_of[c] != row:", "if True:")),
    change("roots of nothing", "tempting", LAYERS, ("if measure == SQRT:", "if measure == -SQRT:")),
    change(
        "one stream for all layers",
        "Euler",
        LAYERS,
        (
            "own, start = derive(key, np.uint64(layer)), starts[layer]\n        n = np.uint64(",
            "own, start = key, starts[layer]\n        n = np.uint64(",
        ),
    ),
    change(
        "a distinct layer by -log(u) * w",
        "classic",
        LAYERS,
        ("-log(unit(word(own, np.uint64(c)))) / measures[start + c]", "-log(unit(word(own, np.uint64(c)))) * measures[start + c]"),
    ),
    change(
        "labels drawn by their parts",
        "tempting",
        "graphd.labels",
        ("split.gathered(indptr, values, rows[starts])", "split.gathered(indptr, values, rows)"),
    ),
    change("probabilities without the rest", "tempting", LAYERS, ("for c in range(drawn, positive):", "for c in range(0):")),
    change(
        "neighbors of each type by themselves",
        "tempting",
        UNION,
        ("                    if ends[t] != ends[lead]:", "                    if t != lead:"),
    ),
    change(
        "equal ids of two types as one neighbor",
        "tempting",
        UNION,
        ("    types = ends.shape[0]\n", "    ends = np.zeros_like(ends)\n    types = ends.shape[0]\n"),
    ),
    change("the first of parallel edges, of a union", "tempting", UNION, ("if arrives < first:", "if first == np.inf:")),
    change(
        "zero weight picked, different over a union",
        "cuGraph #4607",
        UNION,
        ("                        if weight > 0.0:", "                        if (weight := max(weight, 0.5)) > 0.0:"),
    ),
    change("probabilities as if nothing were left out", "tempting", NUMBERED, ("if what.want_probabilities and n:", "if False:")),
    change("what negatives leave by subtraction only", "tempting", NUMBERED, ("left < LEAST * shares.total", "left < 0.0")),
    change(
        "a node that is left out twice weighs twice", "tempting", EXCLUDING, ("if at == indptr[row] or left_out[at] != left_out[at - 1]:", "if True:")
    ),
    change(
        "one stream for all hops of layers",
        "Euler",
        "graphd.layer",
        ("rng.key_of(how.seed, rng.LAYER, how.hop)", "rng.key_of(how.seed, rng.LAYER, 0)"),
    ),
    change("one stream for all hops of subgraphs", "Euler", GROWTH, ("return (hop + 1) * _TYPES + edge_type + 1", "return _TYPES + edge_type + 1")),
    change("one stream for all edge types", "Euler", GROWTH, ("return (hop + 1) * _TYPES + edge_type + 1", "return (hop + 1) * _TYPES + 1")),
    change("joined taken for not joined elsewhere", "tempting", WALK, ("== (self._how.q > 1.0)", "== (self._how.q < 1.0)")),
    change(
        "p and q after a restart",
        "tempting",
        WALK,
        ("return np.where(via >= 0, self._nodes[rows, last], -1), self._near[via]", "return self._nodes[rows, last], self._near[via]"),
    ),
    change(
        "restarts to where the host met the walk",
        "tempting",
        WALK,
        ('sections["starts"] = self._starts[rows]', 'sections["starts"] = self.current[rows]'),
    ),
    change("a step back by q", "tempting", STEPS, ("back=np.float64(1.0 / rules.p)", "back=np.float64(1.0 / rules.q)")),
    change("p and q not looked at", "tempting", STEPS, ("sure=np.float64(min(1.0, away) / most)", "sure=np.float64(1.0)")),
    change("bias over less than the largest", "classic", STEPS, ("max(1.0 / rules.p, 1.0, 1.0 / rules.q)", "max(1.0, 1.0 / rules.q)")),
)
