"""metad: the catalog of spaces, schemas, loads and versions, and the scheduler of jobs.
Graph data does not belong here, and metad opens no connection to another daemon."""
