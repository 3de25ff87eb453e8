"""metad keeps the catalog (spaces, schema, parts, versions, loads) and schedules jobs; it dials
nobody.

Doors: `__main__`, `settings`, `app`, `api` (gRPC), `http` (FastAPI); both doors speak to `service`
(the verbs), and `wire` is where messages become records. Daemons speak to `attendance` (beats) and
`polls` (what they should be doing), woken by `board`. Rooms: `jobs` (model, machine, driver),
`cluster` (who is alive, who holds what), `catalog` (spaces, loads, versions), `store` (the
MetaStore port and its adapters); `upkeep` does what time alone brings. `rooms` composes all but the
doors."""
