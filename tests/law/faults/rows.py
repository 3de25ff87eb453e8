"""Faults of different neighbors, probabilities, rows of draws by number, layers, ego subgraphs and labels."""

from __future__ import annotations

from tests.law.faults import Mutant, change

DIFFERENT, UNION = "storaged.kernel.different", "storaged.kernel.union"
PROBABILITY, EXCLUDING = "storaged.kernel.probability", "graphkit.excluding"
NUMBERED, LAYERS = "graphd.numbered", "graphkit.layers"
POSITIVES = "graphd.positives"
GROWTH = "graphkit.growth"

SIDES = "graphkit.sides"
PACKED, PACKED_WALK = "storaged.kernel.packed", "storaged.kernel.packed_walk"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "alias and column swapped, packed",
        "classic",
        PACKED,
        ("(both & kept) | ((both >> _S32) & ~kept)", "(both >> _S32) & kept | both & ~kept"),
    ),
    change("coins of 32 bits, packed", "many", PACKED, ("if high == threshold:", "if high < 0:")),
    change("nobody is somebody", "cuGraph #4607", PACKED, ("np.int64(found) if found != _NOBODY else np.int64(-1)", "np.int64(found)")),
    change(
        "the neighbor of one, the edge of another",
        "tempting",
        PACKED,
        ("np.int64(starts[at + np.uint64(i)] + (hot & _LOW))", "slots[to + np.uint64(i)]"),
    ),
    change(
        "the first draws of a node again",
        "classic",
        PACKED,
        ("below_short(word(own, np.uint64(begin + k)), degree)", "below_short(word(own, np.uint64(k)), degree)"),
        ("w = word(own, np.uint64(begin + k))", "w = word(own, np.uint64(k))"),
    ),
    change("nodes drawn together draw the same", "tempting", PACKED, ("np.uint64(positions[node])", "np.uint64(positions[first])")),
    change("packed walks take one word", "Euler", PACKED_WALK, ("keys[SLOT_KEY, step]", "keys[SLOT_KEY, 0]")),
    change(
        "packed walks close up over one that goes on",
        "tempting",
        PACKED_WALK,
        ("_TAGS + live] = node, walk, place + _ONE, tag", "_TAGS + live] = node, walk, place + _ONE, own[_TAGS]"),
    ),
    change("packed walks go on elsewhere", "tempting", PACKED_WALK, ("np.uint64((node >= 0) & held[part]) & goes", "np.uint64(node >= 0) & goes")),
    change(
        "half of the draws on either side",
        "Euler",
        SIDES,
        ("share = along / (along + against)", "share = 0.5 if along * against > 0.0 else along / (along + against)"),
    ),
    change(
        "sides by what their draws weigh",
        "tempting",
        SIDES,
        ("            left[side, k] = weights[side, i, k] / probabilities[side, i, k]", "            left[side, k] = weights[side, i, k]"),
    ),
    change("one side, then the other", "tempting", SIDES, ("times[0, a] <= times[1, b]", "a >= 0")),
    change(
        "what is given whole in the order of its edges",
        "tempting",
        SIDES,
        ('order[side, :size] = np.argsort(times[side, :size], kind="mergesort")', "order[side, :size] = np.arange(size)"),
    ),
    change("a side's clock that stands still", "classic", SIDES, ("now += -log", "now = -log")),
    change("probabilities within a side", "tempting", SIDES, ("rest = left[0, a] + left[1, b]", "rest = max(left[0, a], left[1, b])")),
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
        ("& _ONE != _NONE:", "& _ONE == np.uint64(2):"),
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
    change("positives among negatives", "many", NUMBERED, ("if positives is not None and rows and n:", "if False:")),
    change("true edges among negatives", "PyG", POSITIVES, ("if self.joined is not None:\n            open_", "if False:\n            open_")),
    change(
        "neighbors of one source for another",
        "tempting",
        POSITIVES,
        ("sources, targets, kinds = self.sources[rows[asked]],", "sources, targets, kinds = self.sources[rows[asked] * 0],"),
    ),
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
    change(
        "probabilities as if nothing were left out",
        "tempting",
        NUMBERED,
        ("if what.want_probabilities:\n            excluded", "if False:\n            excluded"),
    ),
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
    change(
        "edges between components",
        "tempting",
        "graphd.induced",
        ("groups = None if near.groups is None or far.groups is None else (near.groups, far.groups)", "groups = None"),
    ),
    change("roots where they were grown", "tempting", "graphd.induced", ('seeds[mine] = number[grown["seeds"][mine]]', "pass")),
    change(
        "components but one edge short",
        "tempting",
        "storaged.kernel.between",
        ("for edge in range(degree):", "for edge in range(degree - 1):"),
    ),
    change(
        "a sieve that forgets",
        "tempting",
        "storaged.kernel.between",
        ("sieve[np.int64(bit >> _S6)] |= _ONE << (bit & _LOW6)", "sieve[np.int64(bit >> _S6)] = _ONE << (bit & _LOW6)"),
    ),
    change(
        "components but one edge short, by bits",
        "tempting",
        "storaged.kernel.sifting",
        (
            "for edge in range(whole, size):\n        count = _note(np.uint64(nbr[edge])",
            "for edge in range(whole + ONE, size):\n        count = _note(np.uint64(nbr[edge])",
        ),
    ),
    change(
        "edges sixteen at a time, each by its place among them",
        "tempting",
        "storaged.kernel.sifting",
        ("_NARROW * edge, edge, low", "_NARROW * edge, np.uint64(0), low"),
    ),
    change(
        "ids of edges by the place beside their neighbors",
        "tempting",
        "storaged.kernel.marked",
        ("out_eids[to + j] = np.int64(eids[j])", "out_eids[to + j] = np.int64(ats[j])"),
    ),
    change("ranks that begin anew in every word", "tempting", "storaged.kernel.marks", ("firsts[touched[k]] = rank", "firsts[touched[k]] = first")),
    change(
        "rows side by side, each by the edges of the first one",
        "tempting",
        "storaged.kernel.telling",
        ("starts[i] + np.int64(edge) - begins[owner]", "starts[i] + np.int64(edge)"),
    ),
    change(
        "rows side by side, with what is copied behind them",
        "tempting",
        "storaged.kernel.marked",
        ("filled, count = filled + degree, count + 1", "filled, count = filled + (degree + 15 & ~np.int64(15)), count + 1"),
    ),
    change(
        "a group's rows by the targets of the one before", "tempting", "storaged.kernel.marked", ("group = np.int64(of[i])", "group += np.int64(1)")
    ),
    change("one stream for all edge types", "Euler", GROWTH, ("return (hop + 1) * _TYPES + edge_type + 1", "return (hop + 1) * _TYPES + 1")),
)
