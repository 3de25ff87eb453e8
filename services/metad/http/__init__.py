"""Routes and views of metad's HTTP API, under ``/api/v1``.
Rules belong to `metad.catalog_service`; the HTTP server itself belongs to `asterism_daemonkit`."""
