"""Routes of graphd's HTTP API: sampling, statements, the self-test.
Routes of the web pages belong to `graphd.pages`; those that metad shares, to the daemon kit."""
