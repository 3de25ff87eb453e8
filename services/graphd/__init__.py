"""graphd is the one address a trainer knows: it splits a request over parts, asks storageds, merges
in request order.

`api` decodes requests, `operators` answers them over `routing`; `query` runs statements, `writes`
passes writes on, `filters` restricts requests, `pages` serves the web pages, `app` composes them.
No state of a cluster belongs here: routes and totals are cached from metad's replies."""
