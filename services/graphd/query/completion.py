"""Completion of statements: the keywords and names that may follow a text. A pure module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from lark import Token

from asterism_access.roles import Role
from asterism_model.schema import EdgeType, NodeType, Schema
from graphd.query import euler_parser, ngql_parser
from graphd.query.lark_parser import Grammar

MAX_CANDIDATES = 100
"""Maximum number of completions."""
_OPAQUE = re.compile(
    r"""
    (?P<closed>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | `[^`\n]*` | /\*.*?\*/ | (?:\#|//)[^\n]*\n)
    | (?P<name>`[^\n]*\Z)
    | (?P<open>["'] | /\* | (?:\#|//)[^\n]*\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
"""Texts, quoted names and comments. Only names are completed while they are open."""
_WORD = re.compile(r"(?:\$?[A-Za-z_][\w:]*|\$)\Z")
"""Incomplete word at the end of a text."""
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*(?::[A-Za-z_]\w*)*")
_KIND_AFTER_KEYWORD = {
    "USE": "space",
    "SPACE": "space",
    "EXISTS": "space",
    "TAG": "node",
    "EDGE": "edge",
    "OVER": "edge",
    "THEN": "edge",
    "ON": "type",
    "REVERSE": "edge",
    "WEIGHT": "weight",
    "JOB": "job",
    "WHERE": "feature",
    "AND": "feature",
    "OR": "feature",
    "NOT": "feature",
    "YIELD": "feature",
    "BY": "feature",
}
"""Kind of name that follows a keyword."""
_NODE_STATEMENTS = frozenset({"VERTICES", "NEIGHBORS", "LAYER", "LAYERS", "WALK", "GO"})
"""Keywords of statements in which ON names a node type."""
_ROLES = tuple(sorted(role.name.lower() for role in Role))
_ACCESS_STATEMENTS = frozenset({"GRANT", "REVOKE", "ROLES"})
"""Keywords of statements about roles."""
_JOB_KINDS = ("audit", "backup", "build", "compact", "export-tables", "index", "restore")
"""Names of `metad.model.job_kinds`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceNames:
    """Names that statements about a graph space may use."""

    node: tuple[str, ...] = ()
    edge: tuple[str, ...] = ()
    feature: tuple[str, ...] = ()
    weight: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionCandidate:
    """Completion of a text."""

    text: str
    kind: str
    """keyword, parameter, space, node type, edge type, feature, weight, role or job kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completions:
    """Completions at the end of a text."""

    prefix_length: int = 0
    """Characters before the cursor that a completion replaces."""
    candidates: tuple[CompletionCandidate, ...] = ()


def collect_names(schema: Schema) -> SpaceNames:
    """Return the names of a schema; an edge type has its relation, and its triple."""
    schema_types: list[NodeType | EdgeType] = [*schema.node_types, *schema.edge_types]
    relations = [edge_type.relation for edge_type in schema.edge_types]
    unique_relations = [name for name in relations if relations.count(name) == 1]
    return SpaceNames(
        node=tuple(node_type.name for node_type in schema.node_types),
        edge=tuple(dict.fromkeys([*unique_relations, *(e.name for e in schema.edge_types)])),
        feature=tuple(dict.fromkeys(f.name for t in schema_types for f in t.features)),
        weight=tuple(dict.fromkeys(["weight", *(w.name for t in schema_types for w in t.tables)])),
    )


def complete(
    text: str,
    *,
    space: str = "",
    space_names: Callable[[], Iterable[str]] = tuple,
    names_of: Callable[[str], SpaceNames] = lambda _: SpaceNames(),
    parameters: Iterable[str] = (),
    language: str = "ngql",
) -> Completions:
    """Return the completions at the end of a text.

    Parameters
    ----------
    text : str
        Statements up to the cursor.
    space : str
        Graph space that they start in; USE in the text changes it.
    space_names : callable
        Returns the names of the graph spaces.
    names_of : callable
        Returns the names of a graph space; none if it does not exist.
    parameters : iterable of str
        Names of the parameters, without $.
    language : str
        ngql or euler.

    Returns
    -------
    Completions
        Names first, then parameters and keywords, each in alphabetical order. There are none if
        the text before the last word is invalid, or inside of a literal or a comment.
    """
    last = None
    for last in _OPAQUE.finditer(text):
        if last["open"]:
            return Completions()
    found = last if last is not None and last["name"] else _WORD.search(text)
    prefix = found[0] if found is not None else ""
    is_euler = language == "euler"
    grammar: Grammar = euler_parser.euler_grammar() if is_euler else ngql_parser.ngql_grammar()
    tokens, terminals = grammar.accepted(text[: len(text) - len(prefix)])
    candidates: list[CompletionCandidate] = []
    add = partial(_extend, candidates, prefix)
    statement = _last_statement(tokens)
    if "NAME" in terminals and not is_euler:
        kind = _kind_of_name(statement)
        if kind == "space":
            add("space", map(_quoted, sorted(space_names())))
        elif kind == "role":
            add("role", _ROLES)
        elif kind == "job":
            add("job kind", _JOB_KINDS)
        elif kind:
            names = names_of(_used_space(tokens) or space)
            for label, words in _names_of_kind(kind, names):
                add(label, map(_quoted, words))
    if "PARAMETER" in terminals:
        add("parameter", sorted(f"${name}" for name in parameters))
    if not prefix.startswith("`"):
        keywords = grammar.keywords(terminals)
        is_lower = prefix.islower() and not is_euler
        add("keyword", [word.lower() for word in keywords] if is_lower else keywords)
    return Completions(
        prefix_length=len(prefix) if candidates else 0,
        candidates=tuple(candidates[:MAX_CANDIDATES]),
    )


def _extend(
    candidates: list[CompletionCandidate], prefix: str, kind: str, choices: Iterable[str]
) -> None:
    """Append the choices that a prefix begins."""
    begun = prefix.lstrip("`").lower()
    candidates += [
        CompletionCandidate(text=choice, kind=kind)
        for choice in choices
        if (bare := choice.strip("`").lower()).startswith(begun) and bare != begun
    ]


def _last_statement(tokens: list[Token]) -> list[Token]:
    """Return the tokens after the last semicolon."""
    start = max((i + 1 for i, token in enumerate(tokens) if token.type == "SEMICOLON"), default=0)
    return tokens[start:]


def _used_space(tokens: list[Token]) -> str:
    """Return the space of the last USE; empty if there is none."""
    used = ""
    for previous, token in pairwise(tokens):
        if previous.type == "USE":
            used = str(token).strip("`")
    return used


def _kind_of_name(statement: list[Token]) -> str:
    """Return the kind of name that may follow a statement; empty if it is a new one."""
    words = [token.type for token in statement]
    if not words or words[-1] == "AS" or ("CREATE" in words and words[0] != "SHOW"):
        return ""
    if _ACCESS_STATEMENTS & set(words[:2]):
        return {"ON": "space", "IN": "space", "ROLE": "role"}.get(words[-1], "")
    keyword = next((word for word in reversed(words) if word in _KIND_AFTER_KEYWORD), "")
    kind = _KIND_AFTER_KEYWORD.get(keyword, "")
    if kind == "job":
        return kind if words[-1] == "JOB" else ""
    if kind == "type" and "EXCLUDE" in words:
        return "edge"
    if kind == "type":
        return "edge" if "EDGES" in words else "node" if _NODE_STATEMENTS & set(words) else "type"
    return kind


def _names_of_kind(kind: str, names: SpaceNames) -> Iterator[tuple[str, list[str]]]:
    """Yield names of a kind with the label of the kind."""
    if kind in ("node", "type"):
        yield "node type", sorted(names.node)
    if kind in ("edge", "type"):
        yield "edge type", sorted(names.edge)
    if kind == "feature":
        yield "feature", sorted(names.feature)
    if kind == "weight":
        yield "weight", sorted(names.weight)


def _quoted(name: str) -> str:
    """Return a name in the form that statements have."""
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name}`"
