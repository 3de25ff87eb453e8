"""Web pages of graphd: hosts, spaces, versions, jobs; their API under ``/ui/api``.
State of the cluster does not belong here: metad and storageds are asked for it."""
