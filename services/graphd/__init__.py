"""graphd is the one address a trainer knows: it splits a request over parts, fans out, merges in
request order.

Doors: `__main__`, `settings`, `app`, `api`. Rooms: `sample`, `walk`-like requests over `fanout`
(who is asked), `route` (parts to hosts), `totals` (shares), `split`. Stateless: routes and totals
are cached from metad's replies."""
