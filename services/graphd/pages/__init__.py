"""The web pages: what graphd shows of hosts, spaces, versions, weights, jobs and itself to a
browser.

`files` serves the page, its style and its modules as they lie in ``static`` (no build step, nothing
from another host); `routes` answers what these ask under ``/ui/api``, with `views`; `source` asks
metad for it, `rates` measures this graphd, `shapes` makes histograms and runs of parts of a size
that a plot shows. What may not live here: state of a cluster."""
