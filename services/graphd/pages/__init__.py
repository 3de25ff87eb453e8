"""Web pages of graphd: hosts, spaces, versions, jobs; their API is under ``/ui/api``.
Cluster state does not belong here: the pages request it from metad and storageds."""
