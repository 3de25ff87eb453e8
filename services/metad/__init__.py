"""metad keeps the catalog (spaces, schema, parts, versions, loads) and schedules jobs; it dials nobody.

Doors: `__main__`, `settings`, `app`, `api` (gRPC), `http` (FastAPI). Rooms: `jobs` (model, machine, driver), `cluster`
(who is alive, who holds what), `catalog` (spaces, loads, versions), `store` (the MetaStore port and its adapters).
"""
