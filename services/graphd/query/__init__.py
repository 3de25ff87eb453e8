"""Statements: text in the style of nGQL, and Euler's GQL, read and run in graphd.

Here lives what a statement means: `ngql.lark` and `euler.lark` are the grammars, `reading` and
`gremlin` make frozen records of text, `running` and `catalog` make the client's calls of records
(`asterism.Graph` over this graphd's own handlers, so that a call has one meaning), `table` has what
comes back. `door` is where queries come in. Nothing in a statement is ever compiled or evaluated.
"""
