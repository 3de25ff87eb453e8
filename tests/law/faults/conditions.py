"""Faults of draws under conditions."""

from __future__ import annotations

from tests.law.faults import Mutant, change

RESTRICTED, CONDITIONS, LOOKING, RESTRICTION, COVERS, INTERVALS, COVERED = (
    "storaged.draw.restricted",
    "storaged.draw.conditions",
    "storaged.draw.looking",
    "graphd.restriction",
    "storaged.draw.covers",
    "storaged.draw.intervals",
    "storaged.kernel.covered",
)
PIECES, RANGED, NEAR = "storaged.kernel.near", "storaged.kernel.ranged", "storaged.draw.ranged"

MUTANTS: tuple[Mutant, ...] = (
    change("totals of all rows", "stale totals", CONDITIONS, ("totals={**version.totals, **totals}", "totals=version.totals")),
    change("a condition that is not looked at", "tempting", RESTRICTED, ("rows = np.flatnonzero(mask)", "rows = np.flatnonzero(mask | True)")),
    change(
        "columns of a table for its rows",
        "classic",
        RESTRICTED,
        ("row_of = EMPTY_U32 if whole and positive.size == rows.size else rows[positive]", "row_of = positive.astype(np.uint32)"),
    ),
    change("weights of the first rows", "classic", RESTRICTED, ("drawn = weights[positive]", "drawn = weights[: positive.size]")),
    change("weights of the rows in question, all alike", "tempting", RESTRICTED, ("drawn.min() == drawn.max()", "drawn.min() <= drawn.max()")),
    change("uniform draws of all rows", "tempting", RESTRICTED, ("live_rows=rows,", "live_rows=node.live_rows,")),
    change(
        "rows end where the next one begins",
        "off by one",
        RESTRICTED,
        ("np.searchsorted(slots, side.indptr)", "np.searchsorted(slots, side.indptr + 1)"),
    ),
    change("alias rows of other edges", "classic", RESTRICTED, ("weights = side.weights[slots]", "weights = side.weights[: slots.size]")),
    change("the first in-copies", "tempting", RESTRICTED, ("_side(edge.into, np.flatnonzero(into))", "_side(edge.into, np.arange(int(into.sum())))")),
    change("what is left in the order of slots", "tempting", RESTRICTED, ("ordered = number[side.order]", "ordered = number")),
    change("times of the first edges", "tempting", RESTRICTED, ("when=side.when[slots]", "when=side.when[: slots.size]")),
    change("sums in the order of slots", "tempting", RESTRICTED, ("settled(kept.order), settled(weights)", "np.sort(kept.order), settled(weights)")),
    change("bits from the other end", "classic", LOOKING, ("(7 - (places & 7))", "(places & 7)")),
    change("places by the other division", "classic", LOOKING, ("places = ids // stride", "places = ids % stride")),
    change("in-copies by the row before", "off by one", LOOKING, ('side="right") - 1', 'side="left") - 1')),
    change(
        "totals in the other order",
        "tempting",
        RESTRICTION,
        ("column[:, list(request.parts)] = found", "column[:, list(request.parts)] = found[:, ::-1]"),
    ),
    change(
        "totals of all rows beside an index",
        "stale totals",
        CONDITIONS,
        ("totals={**weighed.totals, **totals}", "totals=weighed.totals"),
    ),
    change(
        "a block is drawn like any other",
        "classic",
        COVERS,
        ("alias.thresholds(*alias.build(measure))", "alias.thresholds(*alias.build(np.ones_like(measure)))"),
    ),
    change(
        "blocks of the run before",
        "off by one",
        COVERS,
        ("measure[mine] = table.sums[starts[mine] // step]", "measure[mine] = table.sums[np.maximum(starts[mine] // step - 1, 0)]"),
    ),
    change(
        "single rows by the weights of the first ones",
        "tempting",
        COVERS,
        ("of.weights[index.rows[starts[single]]]", "of.weights[starts[single]]"),
    ),
    change("uniform draws by weight", "tempting", COVERS, ("    if uniform:\n        starts", "    if False:\n        starts")),
    change("one word for a block and for a row of it", "lagged", COVERED, ("w = word(piece_key, number)", "w = word(row_key, number)")),
    change("one word for a part and for a block of it", "lagged", COVERED, ("w = word(piece_key, number)", "w = word(part_key, number)")),
    change(
        "blocks that begin at even rows",
        "off by one",
        COVERED,
        ("at[j] += np.uint64(starts[piece])", "at[j] += np.uint64(starts[piece] - (starts[piece] & 1))"),
    ),
    change("the first row of every block", "first neighbour", COVERED, ("column = below(w, sizes[piece])", "column = below(w, np.uint64(1))")),
    change(
        "places in the order in place of rows",
        "classic",
        COVERED,
        ("at[j] = np.uint64(u32_at(rows_of[entries[j]], at[j]))", "at[j] = np.uint64(at[j])"),
    ),
    change(
        "a complement of the other end",
        "tempting",
        INTERVALS,
        ("zip(ends[::2], ends[1::2], strict=True)", "zip(ends[1::2], ends[2::2], strict=False)"),
    ),
    change("a run without its last value", "off by one", PIECES, ("stop, highs[s], True)", "stop, highs[s], False)")),
    change("a run without its first value", "off by one", PIECES, ("stop, lows[s], False)", "stop, lows[s], True)")),
    change("down to the right alone", "classic", PIECES, ("        if rest >= left and", "        if")),
    change("down without what the left weighs", "classic", PIECES, ("            rest -= left\n", "            rest -= 0.0\n")),
    change("trees without the last edge of a run", "off by one", PIECES, ("np.int64(first + size + degree)", "np.int64(first + size + degree - 1)")),
    change("the first place of every run", "first neighbour", PIECES, ("np.int64(point >= sums[p])", "np.int64(point < 0.0)")),
    change("how far into the row in place of into the piece", "tempting", PIECES, ("point - sums[chosen - 1] if chosen > 0 else point", "point")),
    change("drawn once more in the place of the next", "classic", RANGED, ("        masses[chosen] = 0.0\n", "        masses[chosen] *= 1.0\n")),
    change(
        "one word for all that differ",
        "lagged",
        RANGED,
        ("point = unit(word(key, np.uint64(k))) * total", "point = unit(word(key, np.uint64(0))) * total"),
    ),
    change("one word for all draws of a node", "lagged", RANGED, ("w = word(own, np.uint64(k))", "w = word(own, np.uint64(0))")),
    change(
        "beginning anew after too many repeats",
        "starting over",
        RANGED,
        ("marks[spot(marks, np.int64(at), shift)] < 0", "marks[spot(marks, np.int64(at), shift)] < 99"),
    ),
    change("slots of the first run", "tempting", RANGED, ("firsts[run] + place))", "firsts[0] + place))")),
    change("what was drawn among what is left", "tempting", RANGED, ("& _ONE == _NONE:", "& _ONE != np.uint64(2):")),
    change("the order of the other end", "classic", NEAR, ("return of.out if direction == OUT else of.into", "return of.out")),
    change("uniform draws told by weight", "tempting", NEAR, ("side.weights[:0] if self.uniform else side.weights", "side.weights")),
    change("shares of all edges", "stale totals", NEAR, ("drawn.totals, settled(at)", "drawn.totals * 2, settled(at)")),
)
