"""What a self-test reports."""

from __future__ import annotations

from dataclasses import dataclass

CORRECTION = "Holm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One G test of draws."""

    subject: str
    """What was drawn: ``"nodes item by weight"``."""
    test: str
    """parts, rows, weights, order, shares, singles or neighbors."""
    draws: int
    cells: int
    statistic: float
    """G with Williams' correction."""
    freedom: int
    """Degrees of freedom; 0: there was one cell, and nothing but the impossible to look for."""
    p: float
    """The chance of so large a G where the law holds; 0 where something impossible was drawn."""
    adjusted: float
    """p after Holm's correction: rejected where it is not above alpha."""
    detectable: float | None
    """The total variation from which on a bias would have been seen with the stated power; None
    where nothing was compared.
    """
    impossible: int
    """Draws of weight 0, or that do not exist, or that are not the rows that they say."""
    worst: str
    """The cell that is off the most, with what was drawn and expected."""
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Something that is exact: it holds or it does not."""

    subject: str
    what: str
    expected: float
    """By the sealed manifest."""
    found: float
    """By scans of the same version."""
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """How a version's draws stand against its weights."""

    space: str
    version: int
    digest: str
    """Of the version's manifest."""
    seed: int
    """Repeats the whole run."""
    draws: int
    """Of each kind of draw."""
    alpha: float
    """The chance of any false alarm in the whole report."""
    power: float
    """With which `Finding.detectable` would have been seen."""
    correction: str
    """How alpha is shared by the tests."""
    scanned: int
    """Rows that were read by scans."""
    seconds: float
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]

    @property
    def failures(self) -> list[str]:
        """A sentence for everything that did not pass."""
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
        """Whether nothing was found wrong."""
        return all(f.passed for f in self.findings) and all(c.passed for c in self.checks)
