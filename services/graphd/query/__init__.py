"""Statements: text in the style of nGQL, and Euler's GQL, read and run in graphd.

`ngql.lark` and `euler.lark` are the grammars; `parser` and `euler_parser` make the records of `ast`
of text, `resolve` checks them, `execute`, `euler_execute` and `catalog` run them as the client's
calls (`asterism.Graph` over this graphd's own handlers), `projection` and `table` make the result.
`service` is where queries come in. Nothing in a statement is ever compiled or evaluated."""
