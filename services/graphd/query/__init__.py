"""Statements of nGQL and Euler's GQL: grammars, parsers, execution as client calls.
Sampling does not belong here. No part of a statement is compiled or evaluated as Python."""
