"""Self-test of a version: sample, scan, compare, decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asterism.calls import validation
from asterism.calls.pins import pin_version
from asterism.catalog_client import CatalogClient
from asterism.verification.draw_source import EDGE, NODE, SINGLE_DRAWS, DrawSource, GlobalDraws
from asterism.verification.hypothesis_tests import GTestResult, detectable_bias, g_test, holm
from asterism.verification.neighbors import compare_neighbors, expected_edges
from asterism.verification.records import CORRECTION, Check, Finding, VerificationReport
from asterism.verification.scan_statistics import (
    OCTAVE_COUNT,
    ZERO_CLASS,
    EdgeEnds,
    Neighborhood,
    TypeCensus,
)
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_model.weight_names import canonical_weight_name
from asterism_proto.errors import InvalidRequest, NotFound

MAX_DRAWS = 1 << 26
_ROWS = 65536
_MAX_NEIGHBOR_EDGES = 1 << 20
"""Maximum number of edges of one type to keep at the chosen nodes."""
_GROUPS, _QUARTERS = 8, 4
"""Numbers of groups of rows, and of parts of a request, that the test of order compares."""

ProgressCallback = Callable[[str, int, int | None], None]
"""Progress callback: (step, rows or draws done, total or None)."""


@dataclass(slots=True, kw_only=True)
class _PendingTest:
    """Test that waits for the verdict over all tests."""

    subject: str
    test: str
    outcome: GTestResult
    impossible: int
    label: Callable[[int], str]


@dataclass(slots=True, kw_only=True)
class _NeighborStarts:
    """Start nodes of neighbor samples, for one node type and direction."""

    node_type: int
    direction: str
    starts: NDArray[np.int64]
    edge_types: list[int]
    by_type: dict[int, Neighborhood]


@dataclass(slots=True, kw_only=True)
class _SelfTest:
    """Self-test of the weights of one name."""

    drawer: DrawSource
    weight: str
    """Name of the weights; "": the rows' own, with which uniform sampling is tested too."""
    totals: Sequence[PartitionStats]
    """Totals by these weights, of the types that have them."""
    draws: int
    buckets: int
    report_progress: ProgressCallback
    tests: list[_PendingTest] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    scanned: int = 0

    def run(self) -> int:
        """Run all samples, scans and tests; return the number of kinds of global draws."""
        sets = [
            global_draws for element in (NODE, EDGE) for global_draws in self._global_draws(element)
        ]
        neighbor_starts = self._choose_starts()
        for element in (NODE, EDGE):
            for type_id in self._types(element):
                self._census(
                    element,
                    type_id,
                    [global_draws for global_draws in sets if global_draws.element == element],
                    neighbor_starts,
                )
        for global_draws in sets:
            if global_draws.type_id is None:
                self._test_shares(global_draws)
        for group in neighbor_starts:
            self._test_neighbors(group)
        return len(sets)

    def _types(self, element: str) -> list[int]:
        """Return the types that have the weights."""
        return sorted({share.type_id for share in self.totals if share.element == element})

    def _names(self, element: str) -> list[str]:
        schema = self.drawer.schema
        return [kind.name for kind in (schema.node_types if element == NODE else schema.edge_types)]

    def _shares_of(self, element: str, type_id: int | None) -> list[PartitionStats]:
        return [s for s in self.totals if s.element == element and type_id in (None, s.type_id)]

    def _measure(self, element: str, type_id: int | None, weighted: bool) -> float:
        return sum(s.weight if weighted else s.count for s in self._shares_of(element, type_id))

    def _global_draws(self, element: str) -> list[GlobalDraws]:
        """Sample every kind of global draw.

        Each type alone and all together, by weight and uniformly; and single draws.
        """
        types, results = self._types(element), []
        for weighted in (True, False)[: 1 if self.weight else 2]:
            combined: list[int | None] = [None] * (len(types) > 1)
            for type_id in [*combined, *types]:
                if self._measure(element, type_id, weighted):
                    results.append(
                        self.drawer.draw_global(
                            element, type_id, types, weighted, self.draws, weight=self.weight
                        )
                    )
                    self.report_progress(
                        "draws", sum(len(global_draws.ids) for global_draws in results), None
                    )
        if self._measure(element, None, True):
            results.append(
                self.drawer.draw_global(
                    element,
                    None,
                    types,
                    True,
                    min(self.draws, SINGLE_DRAWS),
                    weight=self.weight,
                    block=1,
                )
            )
        return results

    def _choose_starts(self) -> list[_NeighborStarts]:
        """Choose start nodes of every type with edges, in every direction that the space keeps."""
        schema, weighted_types = self.drawer.schema, self._types(EDGE)
        populated = [e for e in weighted_types if self._measure(EDGE, e, False)]
        results = []
        for direction in ("out", "in") if schema.direction != "out" else ("out",):
            local_types = [
                schema.node_type_id(e.src_type if direction == "out" else e.dst_type)
                for e in schema.edge_types
            ]
            for node_type in sorted({local_types[e] for e in populated}):
                edge_types = [e for e in weighted_types if local_types[e] == node_type]
                starts = self.drawer.choose_starts(node_type, edge_types, direction, populated)
                neighborhoods = {
                    e: Neighborhood(starts=starts, limit=_MAX_NEIGHBOR_EDGES) for e in edge_types
                }
                results.append(
                    _NeighborStarts(
                        node_type=node_type,
                        direction=direction,
                        starts=starts,
                        edge_types=edge_types,
                        by_type=neighborhoods,
                    )
                )
        return results

    # -- one type ----------------------------------------------------------------------------------

    def _census(
        self,
        element: str,
        type_id: int,
        sets: Sequence[GlobalDraws],
        neighbor_starts: Sequence[_NeighborStarts],
    ) -> None:
        """Scan a type once, find its sampled rows, and test its samples."""
        masks = [global_draws.types == type_id for global_draws in sets]
        keys = (
            np.unique(
                np.concatenate(
                    [global_draws.ids[mask] for global_draws, mask in zip(sets, masks, strict=True)]
                )
            )
            if sets
            else np.zeros(0, np.int64)
        )
        shares = self._shares_of(element, type_id)
        census = TypeCensus(shares, self.buckets, keys, edges=element == EDGE)
        name, rows = self._names(element)[type_id], sum(share.count for share in shares)
        self._scan(census, element, type_id, name, rows, neighbor_starts)
        self.scanned += census.scanned
        element_name = "nodes" if element == NODE else "edges"
        subject = (
            f"{element_name} {name} by {self.weight!r}" if self.weight else f"{element_name} {name}"
        )
        for quantity, expected, scanned, passed in census.checks():
            self.checks.append(
                Check(
                    subject=subject, what=quantity, expected=expected, found=scanned, passed=passed
                )
            )
        for global_draws, mask in zip(sets, masks, strict=True):
            positions = np.searchsorted(keys, global_draws.ids[mask])
            was_scanned = census.draw_counts[positions] > 0
            global_draws.parts[mask] = np.where(was_scanned, census.part[positions], -1)
            if global_draws.ends is not None and census.ends is not None:
                for column in ("src", "dst", "weights"):
                    global_draws.mismatched[mask] |= was_scanned & (
                        getattr(global_draws.ends, column)[mask]
                        != getattr(census.ends, column)[positions]
                    )
            if global_draws.type_id == type_id:
                self._test_type(
                    (
                        f"{element_name} {name} "
                        f"{_weighting(global_draws.weighted, global_draws.weight)}"
                    ),
                    global_draws,
                    census,
                )

    def _scan(
        self,
        census: TypeCensus,
        element: str,
        type_id: int,
        name: str,
        rows: int,
        neighbor_starts: Sequence[_NeighborStarts],
    ) -> None:
        neighborhoods = [
            (n.direction, n.by_type[type_id])
            for n in neighbor_starts
            if element == EDGE and type_id in n.by_type
        ]
        version = self.drawer.version
        if element == NODE:
            for nodes in self.drawer.graph.scan_nodes(
                name, weight=self.weight, version=version, rows=_ROWS
            ):
                census.add(nodes.part, nodes.ids, nodes.weights)
                self.report_progress(f"scan {name}", census.scanned, rows)
                # Read the property to give the next batch the remaining time.
                _ = self.drawer.graph
            return
        for edges in self.drawer.graph.scan_edges(
            name, weight=self.weight, version=version, rows=_ROWS
        ):
            census.add(
                edges.part,
                edges.edge_ids,
                edges.weights,
                EdgeEnds(src=edges.src, dst=edges.dst, weights=edges.weights),
            )
            for direction, neighborhood in neighborhoods:
                ends = (edges.src, edges.dst) if direction == "out" else (edges.dst, edges.src)
                neighborhood.add(*ends, edges.edge_ids, edges.weights)
            self.report_progress(f"scan {name}", census.scanned, rows)
            _ = self.drawer.graph

    def _test_type(self, subject: str, global_draws: GlobalDraws, census: TypeCensus) -> None:
        """Add the tests of one kind of draw of one type."""
        valid = (global_draws.parts >= 0) & ~global_draws.mismatched
        positions = np.searchsorted(census.keys, global_draws.ids[valid])
        bucket = (
            census.bucket[positions] if global_draws.weighted else census.count_bucket[positions]
        )
        rows = census.weight_of_bucket if global_draws.weighted else census.count_of_bucket
        class_sizes = census.weight_of_class if global_draws.weighted else census.count_of_class
        parts = np.zeros(self.drawer.schema.parts)
        for part, share in census.shares.items():
            parts[part] = share.weight if global_draws.weighted else share.count
        first = census.first_of_bucket[0 if global_draws.weighted else 1]
        self._add_test(
            subject, "parts", global_draws.parts[valid], parts, lambda cell: f"part {cell}"
        )
        self._add_test(
            subject,
            "rows",
            bucket,
            rows,
            lambda b: f"rows from id {first[b]}",
            impossible=len(valid) - int(valid.sum()),
        )
        self._add_test(subject, "weights", census.octave[positions], class_sizes, _octave)
        quarter = (
            np.arange(len(global_draws.ids))
            % global_draws.block
            * _QUARTERS
            // np.minimum(global_draws.block, len(global_draws.ids))
        )
        group = np.minimum(bucket.astype(np.int64) * _GROUPS // self.buckets, _GROUPS)
        mass = np.bincount(
            np.minimum(np.arange(len(rows)) * _GROUPS // self.buckets, _GROUPS), rows, _GROUPS + 1
        )
        self._add_test(
            subject,
            "order",
            quarter[valid] * (_GROUPS + 1) + group,
            np.tile(mass, _QUARTERS),
            lambda cell: (
                f"rows of the {cell % (_GROUPS + 1) + 1}. eighth in the "
                f"{cell // (_GROUPS + 1) + 1}. quarter of a request"
            ),
            strata=np.repeat(np.arange(_QUARTERS), _GROUPS + 1),
        )

    def _test_shares(self, global_draws: GlobalDraws) -> None:
        """Add the test of the shares of every (type, partition) in draws from all types."""
        parts, names = self.drawer.schema.parts, self._names(global_draws.element)
        shares = np.zeros(len(names) * parts)
        for share in self._shares_of(global_draws.element, None):
            shares[share.type_id * parts + share.part] = (
                share.weight if global_draws.weighted else share.count
            )
        valid = (global_draws.parts >= 0) & ~global_draws.mismatched
        self._add_test(
            (
                f"{'nodes' if global_draws.element == NODE else 'edges'} of all types "
                f"{_weighting(global_draws.weighted, global_draws.weight)}"
            ),
            "singles" if global_draws.block == 1 else "shares",
            global_draws.types[valid].astype(np.int64) * parts + global_draws.parts[valid],
            shares,
            lambda cell: f"{names[cell // parts]} of part {cell % parts}",
            impossible=len(valid) - int(valid.sum()),
        )

    def _test_neighbors(self, neighbor_starts: _NeighborStarts) -> None:
        """Sample neighbors along each edge type and along all together, and add the tests."""
        names = self._names(EDGE)
        preposition = "along" if neighbor_starts.direction == "out" else "against"
        for edge_types in [[e] for e in neighbor_starts.edge_types] + (
            [neighbor_starts.edge_types] if len(neighbor_starts.edge_types) > 1 else []
        ):
            expected = expected_edges(neighbor_starts.starts, neighbor_starts.by_type, edge_types)
            if not len(expected.starts):
                continue
            for weighted in (True, False)[: 1 if self.weight else 2]:
                samples = self.drawer.draw_neighbors(
                    expected.starts,
                    neighbor_starts.node_type,
                    edge_types,
                    neighbor_starts.direction,
                    weighted,
                    self.draws,
                    weight=self.weight,
                )
                outcome, impossible = compare_neighbors(expected, samples, weighted)
                subject = (
                    f"neighbors {preposition} {' and '.join(names[e] for e in edge_types)} "
                    f"{_weighting(weighted, self.weight)}"
                )
                label = lambda c, t=expected: (  # noqa: E731
                    f"edge {t.edge_ids[c]} of {names[t.types[c]]} at node "
                    f"{t.starts[t.start_index[c]]}"
                )  # Return the name of a cell.
                self.tests.append(
                    _PendingTest(
                        subject=subject,
                        test="neighbors",
                        outcome=outcome,
                        impossible=impossible,
                        label=label,
                    )
                )
                self.report_progress("neighbors", len(self.tests), None)

    def _add_test(
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
        self.tests.append(
            _PendingTest(
                subject=subject,
                test=test,
                outcome=g_test(observed, shares, strata),
                impossible=impossible,
                label=label,
            )
        )


def _weighting(weighted: bool, weight: str) -> str:
    return f"by {weight!r}" if weight else "by weight" if weighted else "uniformly"


def _octave(cell: int) -> str:
    if cell == ZERO_CLASS:
        return "weight 0"
    return (
        f"weights of 2^{cell - OCTAVE_COUNT} to 2^{cell - OCTAVE_COUNT + 1} times their part's mean"
    )


def _findings(tests: Sequence[_PendingTest], alpha: float, power: float) -> tuple[Finding, ...]:
    """Return the findings, corrected over all tests together."""
    p = [0.0 if test.impossible else test.outcome.p for test in tests]
    tested = [i for i, test in enumerate(tests) if test.outcome.freedom or not p[i]]
    adjusted = dict(zip(tested, holm([p[i] for i in tested]), strict=True))
    findings = []
    for i, test in enumerate(tests):
        outcome = test.outcome
        worst_cell = (
            (
                f"{test.label(outcome.worst)}: {outcome.observed:.0f} drawn, "
                f"{outcome.expected:.1f} expected"
            )
            if outcome.worst >= 0
            else ""
        )
        findings.append(
            Finding(
                subject=test.subject,
                test=test.test,
                draws=outcome.draws + test.impossible,
                cells=outcome.cells,
                statistic=outcome.statistic,
                freedom=outcome.freedom,
                p=p[i],
                adjusted=adjusted.get(i, 1.0),
                detectable=detectable_bias(
                    outcome.draws, outcome.freedom, alpha / len(tested), power
                )
                if outcome.freedom
                else None,
                impossible=outcome.impossible + test.impossible,
                worst=worst_cell,
                passed=adjusted.get(i, 1.0) > alpha,
            )
        )
    return tuple(findings)


def _weight_names(schema: Schema, weights: str | Sequence[str] | None) -> list[str]:
    """Return the names of the weights to test, "" for the rows' own, or raise NotFound."""
    types: list[NodeType | EdgeType] = [*schema.node_types, *schema.edge_types]
    known_names = ["", *sorted({table.name for kind in types for table in kind.tables})]
    requested = [canonical_weight_name(name) for name in validation.names(weights)]
    for name in requested:
        if name not in known_names:
            raise NotFound(
                f"weights={name!r}: expected 'weight', the rows' own weights, or a weight table, "
                f"of {known_names[1:]}"
            )
    return list(dict.fromkeys(requested)) or known_names


def verify(
    client: CatalogClient,
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
    on_progress: ProgressCallback | None = None,
) -> VerificationReport:
    """Test whether a version's samples follow its weights, through the client's own calls.

    Every node and edge type is sampled by weight and uniformly, alone and together with all types.
    So are neighbors of some nodes, along every edge type and along all of them. Shares of
    partitions are compared with the sealed manifest. Shares of rows are compared with the weights
    that scans of the same version read: in groups of rows of equal mass, by size of the weight, and
    by position in the request. Rows without weight must never be sampled by weight.

    Parameters
    ----------
    client : Client
        Client of which the connection is used.
    space : str
        Name of the space.
    weights : str or sequence of str, optional
        Names of the weights to test: weight tables, and ``"weight"`` for the rows' own, with which
        uniform sampling is tested too. None: all.
    draws : int, default 100000
        Draws of each kind. The smallest detectable bias falls with their square root.
    alpha : float, default 0.001
        Probability of a false alarm in the whole report, for any number of tests (Holm's
        correction).
    power : float, default 0.9
        Power with which a bias of `Finding.detectable` is detected.
    buckets : int, default 64
        Groups of rows of equal mass per type.
    seed : int, optional
        Seed, to repeat a run. None: a random one, which is reported.
    version : int, optional
        Published version. None: the current one. All samples and scans are pinned to it.
    timeout_s : float, default 3600
        Timeout of the whole run in seconds.
    on_progress : callable, optional
        Called with (step, done, total or None).

    Returns
    -------
    VerificationReport
        ``report.passed``, and ``report.failures`` as text. A bias is a finding, not an error.

    Raises
    ------
    InvalidRequest
        If an argument is out of range.
    NotFound
        If there is no such space, version or weight name, or nothing to sample from.
    Deadline
        If the time is up.

    Notes
    -----
    Every row is read once for each name of weights that its type has; memory grows with the draws.
    The tests are those of `statistics.g_test`.

    Examples
    --------
    >>> assert client.verify("shop", draws=1_000_000).passed  # doctest: +SKIP
    """
    _check(draws, alpha, power, buckets)
    started = time.monotonic()
    source = DrawSource(client, space, validation.seed(seed), timeout_s)
    manifest = source.manifest(validation.version(version))
    runs = [
        _SelfTest(
            drawer=source,
            weight=name,
            totals=manifest.shares(name),
            draws=draws,
            buckets=buckets,
            report_progress=on_progress or (lambda *_: None),
        )
        for name in _weight_names(source.schema, weights)
    ]
    with pin_version(client.session, space, manifest.version, owner="verify"):
        if not sum(run.run() for run in runs):
            raise NotFound(
                f"version {manifest.version} of space {space!r}: expected nodes or edges to "
                f"sample, "
                "it is empty"
            )
    return VerificationReport(
        space=space,
        version=manifest.version,
        digest=manifest.digest,
        seed=source.seed,
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
    """Raise InvalidRequest for a number out of range."""
    if not 0 < alpha < 1 or not 0 < power < 1:
        raise InvalidRequest(f"alpha={alpha}, power={power}: expected numbers between 0 and 1")
    if not 1000 <= draws <= MAX_DRAWS:
        raise InvalidRequest(f"draws={draws}: expected 1000 to {MAX_DRAWS}")
    if not 1 <= buckets <= 1 << 16:
        raise InvalidRequest(f"buckets={buckets}: expected 1 to {1 << 16}")
