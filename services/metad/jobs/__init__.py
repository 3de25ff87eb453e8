"""Scheduling of jobs: decisions in `machine`, effects in `driver`, progress and retention.
Job records belong to `metad.model.jobs`; the work itself belongs to storaged."""
