"""Self-test: samples are compared with the weights that they should follow.

Only the client's calls and NumPy are used here, so that a trainer and graphd can run it.
"""

from asterism.verification.records import Check, Finding, VerificationReport
from asterism.verification.verify import verify

# Name of earlier releases.
Report = VerificationReport

__all__ = ["Check", "Finding", "VerificationReport", "verify"]
