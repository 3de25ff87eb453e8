"""Plants a fault in every Python process of a cluster: a folder for PYTHONPATH, which an
interpreter imports by itself at its start.

``ASTERISM_PLANTED`` names the mutants of `tests.distributions.mutants`, with `|` between. Kernels
run interpreted, so that nothing that is compiled of a mutant is kept for others."""

import os
import sys

if os.environ.get("ASTERISM_PLANTED"):  # noqa: TID251 - before any daemon reads its settings
    from tests.distributions import mutants

    sys.meta_path[:0] = [
        mutants.mutant_finder(name)
        for name in os.environ["ASTERISM_PLANTED"].split("|")  # noqa: TID251
    ]
