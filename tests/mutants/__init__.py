"""Planted faults: a catalogue of mutants, how they are planted, and the one place that runs them.
Checks of distributions belong to `tests.distributions.checks`, tests of services to their packages.
"""

END = "== exit status "
"""Start of the line that ends the report of one group of `python -m tests.mutants --serve`."""
