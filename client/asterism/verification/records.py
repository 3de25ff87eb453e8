"""Records of a self-test's results."""

from __future__ import annotations

from dataclasses import dataclass

CORRECTION = "Holm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of one G test."""

    subject: str
    """Description of the sample: ``"nodes item by weight"``."""
    test: str
    """Name of the test: parts, rows, weights, order, shares, singles or neighbors."""
    draws: int
    cells: int
    statistic: float
    """G statistic with Williams' correction."""
    freedom: int
    """Degrees of freedom; 0: a single cell, so that only impossible draws were checked."""
    p: float
    """p-value: probability of a G this large if samples follow the weights.

    0 if something impossible was sampled.
    """
    adjusted: float
    """p-value after Holm's correction; the test fails unless it is above alpha."""
    detectable: float | None
    """Smallest total variation of a bias that is detected with the stated power.

    None if nothing was compared.
    """
    impossible: int
    """Number of impossible draws: weight 0, nonexistent rows, or wrong content."""
    worst: str
    """Cell with the largest deviation, with its observed and expected counts."""
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of an exact check."""

    subject: str
    what: str
    expected: float
    """Value in the sealed manifest."""
    found: float
    """Value from scans of the same version."""
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """Report of a self-test of a version's samples."""

    space: str
    version: int
    digest: str
    """Digest of the version's manifest."""
    seed: int
    """Seed that repeats the whole run."""
    draws: int
    """Number of draws of each kind."""
    alpha: float
    """Probability of any false alarm in the whole report."""
    power: float
    """Power with which a bias of `Finding.detectable` is detected."""
    correction: str
    """Name of the correction for multiple tests."""
    scanned: int
    """Number of rows read by scans."""
    seconds: float
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]

    @property
    def failures(self) -> list[str]:
        """One sentence per failed test or check."""
        tests = [
            (
                f"{f.subject}, {f.test}: p {f.p:.2g} ({f.adjusted:.2g} corrected), "
                f"{f.impossible} impossible; {f.worst}"
            )
            for f in self.findings
            if not f.passed
        ]
        exact = [
            f"{c.subject}, {c.what}: {c.found:.17g} by scans, {c.expected:.17g} by the manifest"
            for c in self.checks
            if not c.passed
        ]
        return tests + exact

    @property
    def passed(self) -> bool:
        """True if all tests and checks passed."""
        return all(f.passed for f in self.findings) and all(c.passed for c in self.checks)
