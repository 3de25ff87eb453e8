"""Faults of draws under conditions."""

from __future__ import annotations

from tests.law.faults import Mutant, change

RESTRICTED, CONDITIONS, LOOKING, RESTRICTION = (
    "storaged.draw.restricted",
    "storaged.draw.conditions",
    "storaged.draw.looking",
    "graphd.restriction",
)

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
    change("bits from the other end", "classic", LOOKING, ("(7 - (places & 7))", "(places & 7)")),
    change("places by the other division", "classic", LOOKING, ("places = ids // stride", "places = ids % stride")),
    change("in-copies by the row before", "off by one", LOOKING, ('side="right") - 1', 'side="left") - 1')),
    change(
        "totals in the other order",
        "tempting",
        RESTRICTION,
        ("column[:, list(request.parts)] = found", "column[:, list(request.parts)] = found[:, ::-1]"),
    ),
)
