"""The self-test: draws held against the weights that they should follow, through the calls that
trainers use.

`verify` runs it: `samples` draws, `row_census` scans, `neighbors` and `statistics` compare, and
`records` reports. It needs NumPy and the client alone: a trainer may run it, and so does graphd's
HTTP server, as a client of itself."""

from asterism.verification.records import Check, Finding, VerificationReport
from asterism.verification.verify import verify

# Name of earlier releases.
Report = VerificationReport

__all__ = ["Check", "Finding", "VerificationReport", "verify"]
