"""Who may do what: principals, credentials, roles per space, limits, and the audit log.

Pure, apart from key files, issuers' keys and the audit log. Servers that listen belong to
`asterism_daemonkit`, and the catalog of keys and grants to `metad.catalog`.
"""
