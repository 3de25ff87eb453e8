"""The self-test: draws held against the weights that they should follow, through the door that
trainers use.

`run` draws, scans, compares and decides; behind it `draws` (what is asked), `census` (what a scan
finds), `neighbors` and `statistics` (what that says), `records` (what is reported). NumPy and the
wire, nothing else: a trainer may run it, and graphd's HTTP door does, as a trainer of itself."""

from asterism.verification.records import Check, Finding, VerificationReport
from asterism.verification.verify import verify

# Name of earlier releases.
Report = VerificationReport

__all__ = ["Check", "Finding", "VerificationReport", "verify"]
