"""The words that may follow: of the language, and of the live schema, which is asked for beside the typing and never waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asterism.cli.console.rendering import EXPORTS
from asterism.cli.console.running import HELP, LANGUAGES
from asterism.cli.console.scanning import KEYWORDS, Piece, pieces
from asterism_proto.errors import AsterismError

if TYPE_CHECKING:
    from asterism import Client
    from asterism_proto.schema import EdgeType, NodeType, Schema

MOST_OLD_S = 10.0
"""How old what is known of a schema may be when a word is completed, before it is asked for again."""
_AFTER = {"USE": "space", "SPACE": "space", "OVER": "edge", "EDGE": "edge", "TAG": "node", "ON": "type", "THEN": "edge", "WEIGHT": "weight"}
"""What kind of name follows a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Names that statements may have."""

    space: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    edge: tuple[str, ...] = ()
    feature: tuple[str, ...] = ()
    weight: tuple[str, ...] = ()

    @property
    def type(self) -> tuple[str, ...]:
        """Of nodes and edges."""
        return (*self.node, *self.edge)


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One that may follow."""

    text: str
    back: int
    """Characters before the cursor that it stands for."""
    kind: str


def names_of(schema: Schema, spaces: tuple[str, ...]) -> Known:
    """What a schema has names for."""
    kinds: list[NodeType | EdgeType] = [*schema.node_types, *schema.edge_types]
    relations = [t.relation for t in schema.edge_types]
    triples = [t.name for t in schema.edge_types]
    return Known(
        space=spaces,
        node=tuple(t.name for t in schema.node_types),
        edge=tuple(dict.fromkeys([*(name for name in relations if relations.count(name) == 1), *triples])),
        feature=tuple(dict.fromkeys(feature.name for kind in kinds for feature in kind.features)),
        weight=tuple(dict.fromkeys(["weight", *(table.name for kind in kinds for table in kind.tables)])),
    )


@dataclass(slots=True)
class Live:
    """What is known of the spaces and the current one's schema: asked for in a thread, whenever it is older than it may be."""

    client: Client
    space: Callable[[], str]
    """The current one."""
    clock: Callable[[], float] = time.monotonic
    _known: Known = field(default_factory=Known)
    _of: str = ""
    _at: float = float("-inf")
    _asking: bool = False
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def known(self) -> Known:
        """What was heard last; a new answer is on its way where that is old."""
        space = self.space()
        with self._lock:
            old = space != self._of or self.clock() - self._at > MOST_OLD_S
            if old and not self._asking:
                self._asking = True
                self._thread = threading.Thread(target=self._ask, args=(space,), name="asterism-console-schema", daemon=True)
                self._thread.start()
            return self._known

    def forget(self) -> None:
        """Something may have changed: ask anew."""
        with self._lock:
            self._at = float("-inf")

    def stop(self) -> None:
        """Wait for an answer that is on its way, for a moment: whoever is asked is about to close."""
        if self._thread is not None:
            self._thread.join(1.0)

    def _ask(self, space: str) -> None:
        begun = self.clock()
        found: Known | None = None
        try:
            infos = {info.name: info for info in self.client.spaces()}
            spaces = tuple(sorted(infos))
            found = names_of(infos[space].schema, spaces) if space in infos else Known(space=spaces)
        except AsterismError:
            pass  # who is away has no new names: what was heard last stays
        finally:
            with self._lock:
                self._known, self._of, self._at, self._asking = found or self._known, space, begun, False


def words(before: str, known: Known, parameters: tuple[str, ...], language: str = LANGUAGES[0]) -> Iterator[Word]:
    """What may stand where ``before`` ends."""
    if before.lstrip().startswith(":"):
        yield from _of_command(before.lstrip(), known)
        return
    found = [piece for piece in pieces(before) if piece.kind != "blank"]
    begun = ""
    if found and found[-1].end == len(before):
        last = found[-1]
        if last.kind in ("text", "comment", "open", "number"):
            return
        if last.kind in ("word", "keyword", "parameter") or before[last.start] == "$":
            begun = before[last.start :]
            found = found[:-1]
    if begun.startswith("$"):
        yield from _matching(begun, "parameter", tuple(f"${name}" for name in parameters))
        return
    wanted = _wanted(before, found)
    if wanted:
        yield from _matching(begun, wanted, getattr(known, wanted))
        if wanted == "space":
            return
    if language == LANGUAGES[0] and begun:
        in_lower = begun.islower()
        yield from _matching(begun, "keyword", tuple(w.lower() if in_lower else w for w in sorted(KEYWORDS)))
    if begun and not wanted:
        for kind in ("type", "feature", "weight"):
            yield from _matching(begun, kind, getattr(known, kind))


def _wanted(before: str, found: list[Piece]) -> str:
    """What kind of name is expected behind these pieces: one after a word that says so, or another one after a comma."""
    for back, piece in enumerate(reversed(found)):
        text = before[piece.start : piece.end]
        if piece.kind == "keyword":
            return _AFTER.get(text.upper(), "")
        if not (piece.kind in ("word", "quoted") if back % 2 else text == ","):
            return ""
    return ""


def _of_command(text: str, known: Known) -> Iterator[Word]:
    name, blank, rest = text.partition(" ")
    if not blank:
        yield from _matching(name, "command", tuple(dict.fromkeys(said.partition(" ")[0] for said in HELP)))
        return
    choices = {":use": known.space, ":language": LANGUAGES, ":export": EXPORTS, ":timing": ("on", "off")}.get(name, ())
    if " " not in rest.lstrip():
        yield from _matching(rest.lstrip(), "choice", choices)


def _matching(begun: str, kind: str, choices: tuple[str, ...]) -> Iterator[Word]:
    lower = begun.lower()
    for choice in choices:
        if choice.lower().startswith(lower) and choice != begun:
            yield Word(text=choice, back=len(begun), kind=kind)
