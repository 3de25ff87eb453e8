"""Records of metad: catalog, jobs, job kinds, ids, task results.

Their storage belongs to `metad.store`, their messages to `metad.wire`.
"""
