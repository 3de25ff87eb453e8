"""metad keeps the catalog (spaces, schema, parts, versions, loads) and schedules jobs; it dials no
other daemon.

`api` (gRPC) and `http` call the verbs of `service`; daemons report to `heartbeats` and learn from
`desired_state`, woken by `change_feed`. `catalog`, `hosts` and `jobs` keep the records of `model`
in `store`, converted by `wire`; `maintenance` does what falls due with time. `components` composes
all but the servers, `app` these. Graph data does not belong here."""
