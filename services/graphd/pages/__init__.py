"""The web pages: what graphd shows of hosts, spaces, versions, weights, jobs and itself to a
browser.

`files` serves the page, its style and its modules as they lie in ``static`` (no build step, nothing
from another host); `routes` answers what these ask under ``/ui/api``, with `views`; `data` asks
metad for it, `presenters` makes views of it, `rates` measures this graphd, `plots` makes histograms
and runs of parts of a size that a plot shows. State of a cluster does not belong here."""
