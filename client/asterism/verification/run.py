"""A self-test from end to end: draw, scan, compare, decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from asterism import arguments
from asterism.verification.census import OCTAVES, ZERO, Census, Ends, Neighborhood
from asterism.verification.draws import EDGE, NODE, SINGLES, Drawer, Drawn
from asterism.verification.neighbors import compared, truth_of
from asterism.verification.records import CORRECTION, Check, Finding, Report
from asterism.verification.statistics import Outcome, detectable, g_test, holm
from asterism.versions import Share
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.hygiene import OWN_WEIGHTS
from asterism_proto.schema import EdgeType, NodeType, Schema

if TYPE_CHECKING:
    from asterism.client import Client

MOST_DRAWS = 1 << 26
_ROWS = 65536
_GATHERED = 1 << 20
"""Edges of one type at the chosen nodes that are kept at most."""
_GROUPS, _QUARTERS = 8, 4
"""Runs of rows, and of draws within a request, whose counts the test of order compares."""

Told = Callable[[str, int, int | None], None]
"""Told how far it is: (what, rows or draws done, how many there are)."""


@dataclass(slots=True, kw_only=True)
class _Test:
    """A test that waits for the verdict, which is over all of them."""

    subject: str
    test: str
    outcome: Outcome
    impossible: int
    label: Callable[[int], str]


@dataclass(slots=True, kw_only=True)
class _Near:
    """The nodes whose neighbors are drawn, for one node type and direction."""

    node_type: int
    direction: str
    starts: NDArray[np.int64]
    edge_types: list[int]
    by_type: dict[int, Neighborhood]


@dataclass(slots=True, kw_only=True)
class _Run:
    """The self-test of the weights of one name under way."""

    drawer: Drawer
    weight: str
    """"": the rows' own, with which uniform draws are looked at too."""
    totals: Sequence[Share]
    """By these weights, of the types that have them."""
    draws: int
    buckets: int
    told: Told
    tests: list[_Test] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    scanned: int = 0

    def everything(self) -> int:
        """Every draw, every scan, every test; how many kinds of draws there were."""
        sets = [drawn for element in (NODE, EDGE) for drawn in self._drawn(element)]
        near = self._near()
        for element in (NODE, EDGE):
            for type_id in self._types(element):
                self._census(element, type_id, [drawn for drawn in sets if drawn.element == element], near)
        for drawn in sets:
            if drawn.type_id is None:
                self._shares(drawn)
        for group in near:
            self._neighbors(group)
        return len(sets)

    def _types(self, element: str) -> list[int]:
        """Those that have the weights."""
        return sorted({share.type_id for share in self.totals if share.element == element})

    def _names(self, element: str) -> list[str]:
        schema = self.drawer.schema
        return [kind.name for kind in (schema.node_types if element == NODE else schema.edge_types)]

    def _shares_of(self, element: str, type_id: int | None) -> list[Share]:
        return [s for s in self.totals if s.element == element and type_id in (None, s.type_id)]

    def _measure(self, element: str, type_id: int | None, weighted: bool) -> float:
        return sum(s.weight if weighted else s.count for s in self._shares_of(element, type_id))

    def _drawn(self, element: str) -> list[Drawn]:
        """Every kind of global draw: of each type and of all together, by weight and uniformly; and draws of one."""
        types, out = self._types(element), []
        for weighted in (True, False)[: 1 if self.weight else 2]:
            wanted: list[int | None] = [None] * (len(types) > 1)
            for type_id in [*wanted, *types]:
                if self._measure(element, type_id, weighted):
                    out.append(self.drawer.stream(element, type_id, types, weighted, self.draws, weight=self.weight))
                    self.told("draws", sum(len(drawn.ids) for drawn in out), None)
        if self._measure(element, None, True):
            out.append(self.drawer.stream(element, None, types, True, min(self.draws, SINGLES), weight=self.weight, block=1))
        return out

    def _near(self) -> list[_Near]:
        """Whose neighbors are drawn: nodes of every type that has edges, in every direction that is kept."""
        schema, weighed = self.drawer.schema, self._types(EDGE)
        populated = [e for e in weighed if self._measure(EDGE, e, False)]
        out = []
        for direction in ("out", "in") if schema.direction != "out" else ("out",):
            ends = [schema.node_type_id(e.src_type if direction == "out" else e.dst_type) for e in schema.edge_types]
            for node_type in sorted({ends[e] for e in populated}):
                edge_types = [e for e in weighed if ends[e] == node_type]
                starts = self.drawer.starts(node_type, edge_types, direction, populated)
                by_type = {e: Neighborhood(starts=starts, limit=_GATHERED) for e in edge_types}
                out.append(_Near(node_type=node_type, direction=direction, starts=starts, edge_types=edge_types, by_type=by_type))
        return out

    # -- one type -------------------------------------------------------------------------------------------------

    def _census(self, element: str, type_id: int, sets: Sequence[Drawn], near: Sequence[_Near]) -> None:
        """Scan a type once, find its drawn rows, and test the draws of it."""
        masks = [drawn.types == type_id for drawn in sets]
        keys = np.unique(np.concatenate([drawn.ids[mask] for drawn, mask in zip(sets, masks, strict=True)])) if sets else np.zeros(0, np.int64)
        shares = self._shares_of(element, type_id)
        census = Census(shares, self.buckets, keys, edges=element == EDGE)
        name, rows = self._names(element)[type_id], sum(share.count for share in shares)
        self._scan(census, element, type_id, name, rows, near)
        self.scanned += census.scanned
        noun = "nodes" if element == NODE else "edges"
        subject = f"{noun} {name} by {self.weight!r}" if self.weight else f"{noun} {name}"
        for what, expected, by_scan, holds in census.checks():
            self.checks.append(Check(subject=subject, what=what, expected=expected, found=by_scan, passed=holds))
        for drawn, mask in zip(sets, masks, strict=True):
            at = np.searchsorted(keys, drawn.ids[mask])
            known = census.times[at] > 0
            drawn.parts[mask] = np.where(known, census.part[at], -1)
            if drawn.ends is not None and census.ends is not None:
                for column in ("src", "dst", "weights"):
                    drawn.wrong[mask] |= known & (getattr(drawn.ends, column)[mask] != getattr(census.ends, column)[at])
            if drawn.type_id == type_id:
                self._of_type(f"{noun} {name} {_how(drawn.weighted, drawn.weight)}", drawn, census)

    def _scan(self, census: Census, element: str, type_id: int, name: str, rows: int, near: Sequence[_Near]) -> None:
        hoods = [(n.direction, n.by_type[type_id]) for n in near if element == EDGE and type_id in n.by_type]
        pinned = self.drawer.version
        if element == NODE:
            for nodes in self.drawer.graph.scan_nodes(name, weight=self.weight, version=pinned, rows=_ROWS):
                census.add(nodes.part, nodes.ids, nodes.weights)
                self.told(f"scan {name}", census.scanned, rows)
                _ = self.drawer.graph  # the next batch within what is left of the time
            return
        for edges in self.drawer.graph.scan_edges(name, weight=self.weight, version=pinned, rows=_ROWS):
            census.add(edges.part, edges.edge_ids, edges.weights, Ends(src=edges.src, dst=edges.dst, weights=edges.weights))
            for direction, hood in hoods:
                ends = (edges.src, edges.dst) if direction == "out" else (edges.dst, edges.src)
                hood.add(*ends, edges.edge_ids, edges.weights)
            self.told(f"scan {name}", census.scanned, rows)
            _ = self.drawer.graph

    def _of_type(self, subject: str, drawn: Drawn, census: Census) -> None:
        """The tests of one kind of draw of one type."""
        good = (drawn.parts >= 0) & ~drawn.wrong
        at = np.searchsorted(census.keys, drawn.ids[good])
        bucket = census.bucket[at] if drawn.weighted else census.count_bucket[at]
        rows = census.weight_of_bucket if drawn.weighted else census.count_of_bucket
        octaves = census.weight_of_class if drawn.weighted else census.count_of_class
        parts = np.zeros(self.drawer.schema.parts)
        for part, share in census.shares.items():
            parts[part] = share.weight if drawn.weighted else share.count
        first = census.first_of_bucket[0 if drawn.weighted else 1]
        self._add(subject, "parts", drawn.parts[good], parts, lambda cell: f"part {cell}")
        self._add(subject, "rows", bucket, rows, lambda b: f"rows from id {first[b]}", impossible=len(good) - int(good.sum()))
        self._add(subject, "weights", census.octave[at], octaves, _octave)
        quarter = np.arange(len(drawn.ids)) % drawn.block * _QUARTERS // np.minimum(drawn.block, len(drawn.ids))
        group = np.minimum(bucket.astype(np.int64) * _GROUPS // self.buckets, _GROUPS)
        mass = np.bincount(np.minimum(np.arange(len(rows)) * _GROUPS // self.buckets, _GROUPS), rows, _GROUPS + 1)
        self._add(
            subject,
            "order",
            quarter[good] * (_GROUPS + 1) + group,
            np.tile(mass, _QUARTERS),
            lambda cell: f"rows of the {cell % (_GROUPS + 1) + 1}. eighth in the {cell // (_GROUPS + 1) + 1}. quarter of a request",
            strata=np.repeat(np.arange(_QUARTERS), _GROUPS + 1),
        )

    def _shares(self, drawn: Drawn) -> None:
        """The shares of every (type, part) in draws from all types."""
        parts, names = self.drawer.schema.parts, self._names(drawn.element)
        shares = np.zeros(len(names) * parts)
        for share in self._shares_of(drawn.element, None):
            shares[share.type_id * parts + share.part] = share.weight if drawn.weighted else share.count
        good = (drawn.parts >= 0) & ~drawn.wrong
        self._add(
            f"{'nodes' if drawn.element == NODE else 'edges'} of all types {_how(drawn.weighted, drawn.weight)}",
            "singles" if drawn.block == 1 else "shares",
            drawn.types[good].astype(np.int64) * parts + drawn.parts[good],
            shares,
            lambda cell: f"{names[cell // parts]} of part {cell % parts}",
            impossible=len(good) - int(good.sum()),
        )

    def _neighbors(self, near: _Near) -> None:
        """Neighbor draws along each edge type, and along all of them together."""
        names = self._names(EDGE)
        along = "along" if near.direction == "out" else "against"
        for edge_types in [[e] for e in near.edge_types] + ([near.edge_types] if len(near.edge_types) > 1 else []):
            truth = truth_of(near.starts, near.by_type, edge_types)
            if not len(truth.starts):
                continue
            for weighted in (True, False)[: 1 if self.weight else 2]:
                samples = self.drawer.neighbors(truth.starts, near.node_type, edge_types, near.direction, weighted, self.draws, weight=self.weight)
                outcome, impossible = compared(truth, samples, weighted)
                subject = f"neighbors {along} {' and '.join(names[e] for e in edge_types)} {_how(weighted, self.weight)}"
                label = lambda c, t=truth: f"edge {t.edge_ids[c]} of {names[t.types[c]]} at node {t.starts[t.at[c]]}"  # noqa: E731  # a cell's name
                self.tests.append(_Test(subject=subject, test="neighbors", outcome=outcome, impossible=impossible, label=label))
                self.told("neighbors", len(self.tests), None)

    def _add(
        self,
        subject: str,
        test: str,
        cells: NDArray[np.integer],
        shares: NDArray[np.float64],
        label: Callable[[int], str],
        *,
        impossible: int = 0,
        strata: NDArray[np.int64] | None = None,
    ) -> None:
        observed = np.bincount(cells, minlength=len(shares)).astype(np.float64)
        self.tests.append(_Test(subject=subject, test=test, outcome=g_test(observed, shares, strata), impossible=impossible, label=label))


def _how(weighted: bool, weight: str) -> str:
    return f"by {weight!r}" if weight else "by weight" if weighted else "uniformly"


def _octave(cell: int) -> str:
    if cell == ZERO:
        return "weight 0"
    return f"weights of 2^{cell - OCTAVES} to 2^{cell - OCTAVES + 1} times their part's mean"


def _findings(tests: Sequence[_Test], alpha: float, power: float) -> tuple[Finding, ...]:
    """The verdict over all tests together."""
    p = [0.0 if test.impossible else test.outcome.p for test in tests]
    counted = [i for i, test in enumerate(tests) if test.outcome.freedom or not p[i]]
    adjusted = dict(zip(counted, holm([p[i] for i in counted]), strict=True))
    out = []
    for i, test in enumerate(tests):
        outcome = test.outcome
        worst = f"{test.label(outcome.worst)}: {outcome.observed:.0f} drawn, {outcome.expected:.1f} expected" if outcome.worst >= 0 else ""
        out.append(
            Finding(
                subject=test.subject,
                test=test.test,
                draws=outcome.draws + test.impossible,
                cells=outcome.cells,
                statistic=outcome.statistic,
                freedom=outcome.freedom,
                p=p[i],
                adjusted=adjusted.get(i, 1.0),
                detectable=detectable(outcome.draws, outcome.freedom, alpha / len(counted), power) if outcome.freedom else None,
                impossible=outcome.impossible + test.impossible,
                worst=worst,
                passed=adjusted.get(i, 1.0) > alpha,
            )
        )
    return tuple(out)


def _wanted(schema: Schema, weights: str | Sequence[str] | None) -> list[str]:
    """Names of the weights to look at, "" for the rows' own; NotFound for one that no type has."""
    types: list[NodeType | EdgeType] = [*schema.node_types, *schema.edge_types]
    known = ["", *sorted({table.name for kind in types for table in kind.tables})]
    asked = ["" if name in OWN_WEIGHTS else name for name in arguments.names(weights)]
    for name in asked:
        if name not in known:
            raise NotFound(f"weights {name!r}: no type has a table of that name; there are 'weight' (the rows' own) and {known[1:]}")
    return list(dict.fromkeys(asked)) or known


def verify(
    client: Client,
    space: str,
    *,
    weights: str | Sequence[str] | None = None,
    draws: int = 100_000,
    alpha: float = 1e-3,
    power: float = 0.9,
    buckets: int = 64,
    seed: int | None = None,
    version: int | None = None,
    timeout_s: float = 3600.0,
    on_progress: Told | None = None,
) -> Report:
    """Hold a version's draws against its weights, through the door that trainers use.

    Every type of node and edge is drawn from by weight and uniformly, alone and together with all others; so are neighbors
    of some nodes, along every edge type and along all of them. Shares of parts are held against the sealed manifest,
    shares of rows against the weights that scans of the same version read: by runs of rows of equal mass, by size of the
    weight, by place in the request. Rows without weight must not be drawn by weight at all.

    Parameters
    ----------
    client : Client
        Whose connection is used.
    space : str
        The space.
    weights : str or sequence of str, optional
        Names of the weights to look at: tables, and ``"weight"`` for the rows' own, with which uniform draws are looked at. None: all.
    draws : int
        Of each kind; the smallest bias that is seen falls with its square root.
    alpha : float
        The chance of a false alarm in the whole report, whatever the number of tests (Holm's correction).
    power : float
        With which a bias of `Finding.detectable` would be seen.
    buckets : int
        Runs of rows of equal mass per type.
    seed : int, optional
        Repeats a run; drawn fresh where None, and reported.
    version : int, optional
        A published one; None: the current one. All draws and scans are pinned to it.
    timeout_s : float
        Seconds for all of it.
    on_progress : callable, optional
        Told (what, done, of how many or None).

    Returns
    -------
    Report
        ``report.passed``, and ``report.failures`` in words. That a draw is biased is a finding, not an error.

    Raises
    ------
    NotFound
        Where there is no such space, version or name of weights, or nothing to draw.
    Deadline
        Where the time is up.

    Notes
    -----
    Every row is read once for each name of weights that its type has; memory is that of the draws. The tests are of `statistics.g_test`.

    Examples
    --------
    >>> assert client.verify("shop", draws=1_000_000).passed  # doctest: +SKIP
    """
    _check(draws, alpha, power, buckets)
    started = time.monotonic()
    drawer = Drawer(client, space, arguments.seed(seed), timeout_s)
    manifest = drawer.manifest(arguments.version(version))
    runs = [
        _Run(drawer=drawer, weight=name, totals=manifest.shares(name), draws=draws, buckets=buckets, told=on_progress or (lambda *_: None))
        for name in _wanted(drawer.schema, weights)
    ]
    with client.graph(space).pin(manifest.version, owner="verify"):
        if not sum(run.everything() for run in runs):
            raise NotFound(f"version {manifest.version} of space {space!r} is empty: there is nothing to draw")
    return Report(
        space=space,
        version=manifest.version,
        digest=manifest.digest,
        seed=drawer.seed,
        draws=draws,
        alpha=alpha,
        power=power,
        correction=CORRECTION,
        scanned=sum(run.scanned for run in runs),
        seconds=round(time.monotonic() - started, 3),
        findings=_findings([test for run in runs for test in run.tests], alpha, power),
        checks=tuple(check for run in runs for check in run.checks),
    )


def _check(draws: int, alpha: float, power: float, buckets: int) -> None:
    """InvalidRequest for a number that makes no sense."""
    if not 0 < alpha < 1 or not 0 < power < 1:
        raise InvalidRequest(f"alpha {alpha} and power {power}: expected numbers between 0 and 1")
    if not 1000 <= draws <= MOST_DRAWS:
        raise InvalidRequest(f"draws {draws}: expected 1000 to {MOST_DRAWS}")
    if not 1 <= buckets <= 1 << 16:
        raise InvalidRequest(f"buckets {buckets}: expected 1 to {1 << 16}")
