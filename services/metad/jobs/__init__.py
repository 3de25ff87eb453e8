"""Jobs: decisions as a pure function (`machine`), effects in a thin shell (`driver`), progress and
retention of what ended.

Jobs as values belong to `metad.model.jobs`."""
