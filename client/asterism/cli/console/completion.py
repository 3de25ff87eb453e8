"""Completion of keywords and of names of the live schema.

The names are fetched in the background.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asterism.cli.console.results import EXPORT_FORMATS
from asterism.cli.console.session import HELP, LANGUAGES
from asterism.cli.console.tokens import KEYWORDS, Token, tokenize
from asterism.records.access import ROLES
from asterism_proto.errors import AsterismError

if TYPE_CHECKING:
    from asterism import Client
    from asterism_model.schema import EdgeType, NodeType, Schema

MAX_AGE_S = 10.0
"""Seconds after which the names of a schema are fetched again."""
_KIND_AFTER_KEYWORD = {
    "USE": "space",
    "SPACE": "space",
    "OVER": "edge",
    "EDGE": "edge",
    "TAG": "node",
    "ON": "type",
    "THEN": "edge",
    "WEIGHT": "weight",
}
"""Kind of name that follows a keyword."""
_KIND_IN_ROLE_STATEMENT = {"ON": "space", "IN": "space", "ROLE": "role"}
"""The same in a statement about roles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaNames:
    """Names of a schema, by kind."""

    space: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    edge: tuple[str, ...] = ()
    feature: tuple[str, ...] = ()
    weight: tuple[str, ...] = ()

    @property
    def type(self) -> tuple[str, ...]:
        """Names of node types and edge types."""
        return (*self.node, *self.edge)

    @property
    def role(self) -> tuple[str, ...]:
        """Names of roles."""
        return ROLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A completion."""

    text: str
    prefix_length: int
    """Characters before the cursor that it replaces."""
    kind: str


def collect_names(schema: Schema, spaces: tuple[str, ...]) -> SchemaNames:
    """Return the names of a schema."""
    kinds: list[NodeType | EdgeType] = [*schema.node_types, *schema.edge_types]
    relations = [t.relation for t in schema.edge_types]
    triples = [t.name for t in schema.edge_types]
    return SchemaNames(
        space=spaces,
        node=tuple(t.name for t in schema.node_types),
        edge=tuple(
            dict.fromkeys([*(name for name in relations if relations.count(name) == 1), *triples])
        ),
        feature=tuple(dict.fromkeys(feature.name for kind in kinds for feature in kind.features)),
        weight=tuple(
            dict.fromkeys(["weight", *(table.name for kind in kinds for table in kind.tables)])
        ),
    )


@dataclass(slots=True)
class SchemaNameCache:
    """Cache of the names of the spaces and of the current schema.

    A thread refreshes the cache when it is stale.
    """

    client: Client
    space: Callable[[], str]
    """Returns the name of the current space."""
    clock: Callable[[], float] = time.monotonic
    _names: SchemaNames = field(default_factory=SchemaNames)
    _fetched_space: str = ""
    _fetched_at: float = float("-inf")
    _is_fetching: bool = False
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def names(self) -> SchemaNames:
        """Return the cached names; start a refresh if they are stale."""
        space = self.space()
        with self._lock:
            is_stale = space != self._fetched_space or self.clock() - self._fetched_at > MAX_AGE_S
            if is_stale and not self._is_fetching:
                self._is_fetching = True
                self._thread = threading.Thread(
                    target=self._fetch, args=(space,), name="asterism-console-schema", daemon=True
                )
                self._thread.start()
            return self._names

    def invalidate(self) -> None:
        """Mark the names as stale."""
        with self._lock:
            self._fetched_at = float("-inf")

    def stop(self) -> None:
        """Wait up to a second for a running refresh, before the client is closed."""
        if self._thread is not None:
            self._thread.join(1.0)

    def _fetch(self, space: str) -> None:
        started = self.clock()
        fetched: SchemaNames | None = None
        try:
            infos = {info.name: info for info in self.client.spaces()}
            spaces = tuple(sorted(infos))
            fetched = (
                collect_names(infos[space].schema, spaces)
                if space in infos
                else SchemaNames(space=spaces)
            )
        except AsterismError:
            pass  # keep the cached names while the service is unreachable
        finally:
            with self._lock:
                self._names, self._fetched_space, self._fetched_at, self._is_fetching = (
                    fetched or self._names,
                    space,
                    started,
                    False,
                )


def candidates(
    before: str,
    schema_names: SchemaNames,
    parameters: tuple[str, ...],
    language: str = LANGUAGES[0],
) -> Iterator[Candidate]:
    """Yield the completions at the end of ``before``."""
    if before.lstrip().startswith(":"):
        yield from _command_candidates(before.lstrip(), schema_names)
        return
    tokens = [token for token in tokenize(before) if token.kind != "blank"]
    prefix = ""
    if tokens and tokens[-1].end == len(before):
        last = tokens[-1]
        if last.kind in ("text", "comment", "open", "number"):
            return
        if last.kind in ("word", "keyword", "parameter") or before[last.start] == "$":
            prefix = before[last.start :]
            tokens = tokens[:-1]
    if prefix.startswith("$"):
        yield from _matching_prefix(prefix, "parameter", tuple(f"${name}" for name in parameters))
        return
    expected_kind = _expected_kind(before, tokens)
    if expected_kind:
        yield from _matching_prefix(prefix, expected_kind, getattr(schema_names, expected_kind))
        if expected_kind == "space":
            return
    if language == LANGUAGES[0] and prefix:
        is_lower = prefix.islower()
        yield from _matching_prefix(
            prefix, "keyword", tuple(w.lower() if is_lower else w for w in sorted(KEYWORDS))
        )
    if prefix and not expected_kind:
        for kind in ("type", "feature", "weight"):
            yield from _matching_prefix(prefix, kind, getattr(schema_names, kind))


def _expected_kind(before: str, tokens: list[Token]) -> str:
    """Return the kind of name that is expected after these tokens.

    A keyword determines the kind of the name after it, and of further names after commas.
    """
    for distance, token in enumerate(reversed(tokens)):
        text = before[token.start : token.end]
        if token.kind == "keyword":
            if _is_about_roles(before, tokens):
                return _KIND_IN_ROLE_STATEMENT.get(text.upper(), "") if not distance else ""
            return _KIND_AFTER_KEYWORD.get(text.upper(), "")
        if not (token.kind in ("word", "quoted") if distance % 2 else text == ","):
            return ""
    return ""


def _is_about_roles(before: str, tokens: list[Token]) -> bool:
    """Return whether ROLE or ROLES is the second word of the last statement."""
    starts = [i + 1 for i, token in enumerate(tokens) if token.kind == "end"]
    words = [before[token.start : token.end].upper() for token in tokens[max(starts, default=0) :]]
    return words[1:2] in (["ROLE"], ["ROLES"])


def _command_candidates(text: str, schema_names: SchemaNames) -> Iterator[Candidate]:
    name, blank, rest = text.partition(" ")
    if not blank:
        yield from _matching_prefix(
            name,
            "command",
            tuple(dict.fromkeys(command_help.partition(" ")[0] for command_help in HELP)),
        )
        return
    choices = {
        ":use": schema_names.space,
        ":language": LANGUAGES,
        ":export": EXPORT_FORMATS,
        ":timing": ("on", "off"),
    }.get(name, ())
    if " " not in rest.lstrip():
        yield from _matching_prefix(rest.lstrip(), "choice", choices)


def _matching_prefix(prefix: str, kind: str, choices: tuple[str, ...]) -> Iterator[Candidate]:
    lower = prefix.lower()
    for choice in choices:
        if choice.lower().startswith(lower) and choice != prefix:
            yield Candidate(text=choice, prefix_length=len(prefix), kind=kind)
