"""Statements as frozen records; `str` of a record returns the text of its statement."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PLAIN = re.compile(
    r"[a-z_][a-z0-9_]*(?::[a-z_][a-z0-9_]*:[a-z_][a-z0-9_]*)?", re.IGNORECASE | re.ASCII
)
_SIMPLE = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Value that is passed with the statement, by name."""

    name: str
    at: int = field(default=0, compare=False)
    """Position in the text, from 0, as in every record."""

    def __str__(self) -> str:
        return f"${self.name}"


Value = int | float | str | bool | Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """Name of a space, type, column, table or option."""

    text: str
    at: int = field(default=0, compare=False)
    quoted: bool = field(default=False, compare=False)
    """True if it stands between backticks."""

    def __str__(self) -> str:
        return f"`{self.text}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeName(Identifier):
    """Name of a type; that of an edge type may be a triple."""

    def __str__(self) -> str:
        return (
            self.text
            if _PLAIN.fullmatch(self.text) and not _SIMPLE.fullmatch(self.text)
            else f"`{self.text}`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRef:
    """Reference to a column of a row."""

    name: Identifier
    end: str = ""
    """Owner of the column: "" is the row itself, ``src`` and ``dst`` are an edge's ends.

    ``near`` is the local end, from which the edge is followed, and ``far`` the remote end.
    """
    element: int | None = None
    quoted: bool = False
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        stem = {"": "", "near": "$^.", "far": "$$."}.get(self.end, f"{self.end}.")
        name = str(self.name) if self.quoted else self.name.text
        return f"{stem}{name}" + ("" if self.element is None else f"[{self.element}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereClause:
    """Filter as tokens of the filter language, each with its position in the statement."""

    words: tuple[tuple[str | ColumnRef | Parameter, int], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WhereClause) and [word for word, _ in self.words] == [
            word for word, _ in other.words
        ]

    def __hash__(self) -> int:
        return hash(tuple(word for word, _ in self.words))

    def __str__(self) -> str:
        return " ".join(str(word) for word, _ in self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class YieldItem:
    """Column of the requested table."""

    column: ColumnRef
    alias: Identifier | None = None

    @property
    def title(self) -> str:
        """Name of the column in the table."""
        if self.alias is not None:
            return self.alias.text
        stem = {"": "", "near": "$^.", "far": "$$."}.get(self.column.end, f"{self.column.end}.")
        return (
            stem
            + self.column.name.text
            + ("" if self.column.element is None else f"[{self.column.element}]")
        )

    def __str__(self) -> str:
        return str(self.column) + (f" AS {self.alias}" if self.alias is not None else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBy:
    """Columns by which the rows of a table are sorted."""

    keys: tuple[tuple[Identifier, bool], ...]
    """Names, each with True for descending order."""

    def __str__(self) -> str:
        return "ORDER BY " + ", ".join(
            f"{name}{' DESC' if descending else ''}" for name, descending in self.keys
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Range of a table's rows to keep."""

    count: Value
    offset: Value = 0

    def __str__(self) -> str:
        return f"LIMIT {self.offset}, {self.count}" if self.offset != 0 else f"LIMIT {self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount:
    """``YIELD count(*)``: the number of rows, in place of the rows."""

    alias: Identifier | None = None

    @property
    def title(self) -> str:
        """Name of the column in the table."""
        return "count(*)" if self.alias is None else self.alias.text

    def __str__(self) -> str:
        return "YIELD count(*)" + (f" AS {self.alias}" if self.alias is not None else "")


EdgeEnd = Parameter | int | str
"""End of an edge: one node, or the nodes of a parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedPairs:
    """``EXCLUDE``: edges of one type that are as if they did not exist."""

    pairs: tuple[tuple[EdgeEnd, EdgeEnd, Parameter | int | None], ...]
    """Source, destination and edge id; None for all edges between the two."""
    edge_type: TypeName | None = None
    """Their type; None for the only type that the statement follows."""
    reverse_type: TypeName | None = None
    """Type of the reverse edges, which are excluded too."""
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        pairs = ", ".join(
            f"{_end(src)} -> {_end(dst)}" + ("" if edge_id is None else f" @ {edge_id}")
            for src, dst, edge_id in self.pairs
        )
        edge_type = "" if self.edge_type is None else f" ON {self.edge_type}"
        reverse_type = "" if self.reverse_type is None else f" REVERSE {self.reverse_type}"
        return f"EXCLUDE{edge_type} {pairs}{reverse_type}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawOptions:
    """Options that follow any sampling or read statement."""

    where: WhereClause | None = None
    weight: Identifier | Parameter | None = None
    seed: Value | None = None
    version: Value | None = None
    items: tuple[YieldItem, ...] = ()
    excluded: tuple[ExcludedPairs, ...] = ()
    replace: bool | None = None
    direction: str = ""
    """``REVERSELY``, ``BIDIRECT`` or empty."""
    uniform: bool = False
    padded: bool = False
    distinct: bool = False
    unlike: bool = False
    """True for ``YIELD DISTINCT``."""
    counted: RowCount | None = None
    """``YIELD count(*)`` of the statement itself, without ``items``."""
    measure: str = ""
    p: Value | None = None
    q: Value | None = None
    restart: Value | None = None
    walks: Value | None = None
    counts: Parameter | tuple[Value, ...] | None = None
    """Values of ``SAMPLE [n1, n2]``."""
    limits: tuple[Value, ...] | None = None
    """Values of ``LIMIT [n1, n2]``."""
    shape: tuple[OrderBy | Limit | RowCount, ...] = ()
    """Operations on the table, in this order."""
    places: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """Position of each option by its field name."""

    def __str__(self) -> str:
        pairs = (
            (self.direction, True),
            (f"BY {self.measure}", self.measure),
            (f"WHERE {self.where}", self.where),
            (" ".join(map(str, self.excluded)), self.excluded),
            (f"{'WITH' if self.replace else 'WITHOUT'} REPLACEMENT", self.replace is not None),
            ("UNIFORM", self.uniform),
            ("DISTINCT", self.distinct),
            ("PADDED", self.padded),
            (f"WEIGHT {self.weight}", self.weight),
            (f"P {self.p}", self.p is not None),
            (f"Q {self.q}", self.q is not None),
            (f"RESTART {self.restart}", self.restart is not None),
            (f"WALKS {self.walks}", self.walks is not None),
            (f"SEED {self.seed}", self.seed is not None),
            (f"VERSION {self.version}", self.version is not None),
            (
                f"YIELD {'DISTINCT ' if self.unlike else ''}{', '.join(map(str, self.items))}",
                self.items,
            ),
            (str(self.counted), self.counted is not None),
            (f"SAMPLE {format_values(self.counts)}", self.counts is not None),
            (f"LIMIT {format_values(self.limits)}", self.limits is not None),
        )
        return " ".join(
            [text for text, is_present in pairs if is_present and text]
            + [f"| {step}" for step in self.shape]
        )


Hop = tuple[TypeName, ...]
"""Edge types of a step; empty means all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawStatement:
    """Sampling or read statement, which becomes one call of a graph."""

    kind: str
    """One of ``vertices``, ``edges``, ``neighbors``, ``top``, ``layer``, ``layers``,
    ``negatives``, ``walk``, ``go`` and ``fetch``.
    """
    count: Value | None = None
    counts: Parameter | tuple[Value, ...] | None = None
    """Counts of ``layers``."""
    types: tuple[TypeName, ...] = ()
    """Types to sample from; empty means all."""
    like: bool = False
    nodes: Parameter | tuple[int | str, ...] | None = None
    node_type: TypeName | None = None
    """Type of ``nodes``."""
    pairs: tuple[tuple[EdgeEnd, EdgeEnd], ...] = ()
    """End nodes of edges that are fetched by their ends."""
    hops: tuple[Hop, ...] = ()
    first: Value | None = None
    """First step of ``GO m TO n STEPS``."""
    options: DrawOptions = field(default_factory=DrawOptions)
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        types_text = f" ON {', '.join(map(str, self.types))}" if self.types else ""
        node_type_text = f" ON {self.node_type}" if self.node_type is not None else ""
        origin = f" FROM {format_values(self.nodes)}{node_type_text}"
        traversal = (
            f"{origin} OVER {' THEN '.join(', '.join(map(str, hop)) or '*' for hop in self.hops)}"
        )
        steps = (
            f" {self.first} TO {self.count} STEPS"
            if self.first is not None
            else f" {self.count} STEPS"
            if self.count is not None
            else ""
        )
        match self.kind:
            case "vertices":
                text = f"SAMPLE {self.count} VERTICES{types_text}" + (
                    f" LIKE {format_values(self.nodes)}{node_type_text}" if self.like else ""
                )
            case "edges":
                text = f"SAMPLE {self.count} EDGES{types_text}"
            case "negatives":
                text = f"SAMPLE {self.count} NEGATIVES{origin}{types_text}"
            case "neighbors" | "top":
                text = (
                    f"{'TOP' if self.kind == 'top' else 'SAMPLE'} {self.count} NEIGHBORS{traversal}"
                )
            case "layer":
                text = f"SAMPLE LAYER {self.count}{traversal}"
            case "layers":
                text = f"SAMPLE LAYERS {format_values(self.counts)}{traversal}"
            case "fetch":
                ends = ", ".join(" -> ".join(map(_end, pair)) for pair in self.pairs)
                text = f"FETCH PROP ON {self.types[0]} {ends or format_values(self.nodes)}"
            case _:
                text = f"{self.kind.upper()}{steps}{traversal}"
        return f"{text} {self.options}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class UseStatement:
    """``USE``: the space of the next statements."""

    space: Identifier
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"USE {self.space}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowStatement:
    """``SHOW``: lists of the catalog."""

    subject: str
    """``SPACES``, ``HOSTS``, ``PARTS``, ...

    ``JOB`` and ``CREATE SPACE`` have an argument, and ``ROLES`` may have one.
    """
    role: str = ""
    job: Value | None = None
    space: Identifier | None = None
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        if self.subject == "ROLES":
            return "SHOW ROLES" + ("" if self.space is None else f" ON {_any_space(self.space)}")
        subject = self.role or self.job if self.job is not None or self.role else self.space
        return f"SHOW {self.subject}" + (f" {subject}" if subject not in ("", None) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeStatement:
    """``DESCRIBE``: one space or type."""

    object_kind: str
    name: Identifier
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"DESCRIBE {self.object_kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureDefinition:
    """Feature column of a type to create."""

    name: Identifier
    dtype: str
    ragged: bool = False
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        kind = (
            f"LIST<{self.dtype}>"
            if self.ragged
            else self.dtype + (f"[{', '.join(map(str, self.shape))}]" if self.shape else "")
        )
        return f"{self.name} {kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDefinition:
    """Type to create; an edge type if it has ends."""

    name: Identifier
    features: tuple[FeatureDefinition, ...] = ()
    src: Identifier | None = None
    dst: Identifier | None = None
    weighted: bool = False
    weights: tuple[tuple[Identifier, str, bool], ...] = ()
    """Names, expressions, and True if invalid weights become 0."""
    label: Identifier | None = None
    index: tuple[tuple[Identifier, int | None], ...] = ()
    """Indexed columns; for a vector, the index of one of its values."""
    unique: bool = False
    missing: str = ""
    time: Identifier | None = None
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        columns = f" ({', '.join(map(str, self.features))})" if self.features else ""
        ends = f" FROM {self.src} TO {self.dst}" if self.src is not None else ""
        weights = ", ".join(
            f"{name} = {quote(text)}{' OR ZERO' if zero else ''}"
            for name, text, zero in self.weights
        )
        index = ", ".join(
            str(name) if element is None else f"{name}[{element}]" for name, element in self.index
        )
        clauses = [
            (" WEIGHTED", self.weighted),
            (f" WEIGHTS ({weights})", weights),
            (f" GRAPH LABEL {self.label}", self.label),
            (f" INDEX ({index})", index),
            (" UNIQUE", self.unique),
            (f" MISSING {self.missing}", self.missing),
            (f" TIME {self.time}", self.time),
        ]
        suffix = "".join(text for text, is_present in clauses if is_present)
        return f"{'EDGE' if self.src is not None else 'TAG'} {self.name}{columns}{ends}{suffix}"


Settings = tuple[tuple[Identifier, Value], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSpaceStatement:
    """``CREATE SPACE``: a space with all its types."""

    name: Identifier
    if_not_exists: bool = False
    settings: Settings = ()
    owners: tuple[TypeDefinition, ...] = ()
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        head = (
            "CREATE SPACE "
            f"{'IF NOT EXISTS ' if self.if_not_exists else ''}{self.name}{_settings(self.settings)}"
        )
        return f"{head} {', '.join(map(str, self.owners))}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSpaceStatement:
    """``DROP SPACE``."""

    name: Identifier
    if_exists: bool = False
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"DROP SPACE {'IF EXISTS ' if self.if_exists else ''}{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitJobStatement:
    """``SUBMIT JOB``."""

    kind: Identifier
    version: Value | None = None
    settings: Settings = ()
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        version = f" VERSION {self.version}" if self.version is not None else ""
        return f"SUBMIT JOB {self.kind.text}{version}" + (
            f" WITH{_settings(self.settings)}" if self.settings else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlJobStatement:
    """``STOP JOB`` and ``RECOVER JOB``."""

    action: str
    job: Value | None = None
    """Job number; None recovers all jobs of the space that can be recovered."""
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.action} JOB" + ("" if self.job is None else f" {self.job}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRoleStatement:
    """``GRANT ROLE``: the role of a principal in a space."""

    role: Identifier
    space: Identifier
    """Name of a space; ``*`` is every space."""
    principal: Identifier | Parameter
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"GRANT ROLE {self.role} ON {_any_space(self.space)} TO {_principal(self.principal)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRoleStatement:
    """``REVOKE ROLE``."""

    space: Identifier
    principal: Identifier | Parameter
    role: Identifier | None = None
    """Role that the principal must have there; None: any."""
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        role = "" if self.role is None else f" {self.role}"
        return f"REVOKE ROLE{role} ON {_any_space(self.space)} FROM {_principal(self.principal)}"


Body = (
    UseStatement
    | ShowStatement
    | DescribeStatement
    | CreateSpaceStatement
    | DropSpaceStatement
    | SubmitJobStatement
    | ControlJobStatement
    | GrantRoleStatement
    | RevokeRoleStatement
    | DrawStatement
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement, to be run, explained or profiled."""

    body: Body
    mode: str = ""
    """``EXPLAIN``, ``PROFILE`` or empty."""
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.mode} {self.body}".lstrip()


def _end(end: EdgeEnd) -> str:
    return quote(end) if isinstance(end, str) else str(end)


def _any_space(space: Identifier) -> str:
    return space.text if space.text == "*" else str(space)


def _principal(principal: Identifier | Parameter) -> str:
    return str(principal) if isinstance(principal, Parameter) else quote(principal.text)


def _settings(settings: Settings) -> str:
    pairs = ", ".join(
        f"{key.text} = {quote(value) if isinstance(value, str) else format_scalar(value)}"
        for key, value in settings
    )
    return f" ({pairs})" if settings else ""


def quote(text: str) -> str:
    """Return a text as a quoted literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def format_scalar(value: object) -> str:
    """Return a value other than a text as a literal."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def format_values(values: object) -> str:
    """Return a list of values, or the parameter that contains them, as text."""
    return (
        f"[{', '.join(quote(value) if isinstance(value, str) else str(value) for value in values)}]"
        if isinstance(values, tuple)
        else str(values)
    )
