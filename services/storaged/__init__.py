"""storaged holds parts: it keeps blocks, builds tables and images, and answers draws from the
images.

Doors: `__main__` (start), `settings` (what it was told), `app` (how it is composed), `api` (what it
is asked). Rooms: `holdings` (what is here), `opening` and `sweeping` (versions come, leftovers go),
`work` (builds as child processes), `build` (the passes), `draw` (what a request means on images),
`kernel` (the loops), `store` (RocksDB and files). Asked by graphd only; asks metad only."""
