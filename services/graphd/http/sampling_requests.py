"""Bodies of the sampling routes: the arguments of the calls of `asterism.graph.Graph` as JSON.

Names and defaults are those of the calls. Each model ends with the fields that all of them have.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from asterism_daemonkit.http.models import HttpModel
from graphd.http.timeouts import MAX_TIMEOUT_S

_MAX_COUNT = 1 << 31
_MAX_ID = 1 << 63

NodeId = (
    Annotated[int, Field(strict=True, ge=-1, lt=_MAX_ID)]
    | Annotated[str, Field(strict=True, max_length=256)]
)
"""Id of a node: an integer or its digits as text, or the node's name in a space of string ids."""
Count = Annotated[int, Field(strict=True, ge=0, lt=_MAX_COUNT)]
PositiveCount = Annotated[int, Field(strict=True, ge=1, lt=_MAX_COUNT)]
Neighbors = Count | Annotated[float, Field(strict=True, gt=0, le=1)]
"""Neighbors per node, or a share of each node's edges."""
HopCount = Annotated[int, Field(strict=True, ge=-1, lt=_MAX_COUNT)]
TypeNames = str | list[str] | None

Nodes = Annotated[
    list[NodeId],
    Field(
        description=(
            "Start nodes. An id is an integer or its digits as text, in a space of string ids the "
            'node\'s name. -1 or "" means "no node".'
        )
    ),
]
Layers = Annotated[
    list[NodeId] | list[list[NodeId]],
    Field(
        description=(
            "Start nodes: one layer, or several layers of the same size that are sampled "
            "independently."
        )
    ),
]
NodeTypeNames = Annotated[
    TypeNames, Field(description="Node types to sample from, together; null: all.")
]
EdgeTypeNames = Annotated[
    TypeNames,
    Field(description="Edge types to follow, by triple or relation; null: all."),
]
ReturnedEdgeTypes = Annotated[
    TypeNames, Field(description="Types of the edges to return; null: the followed ones.")
]
Metapath = Annotated[list[TypeNames], Field(description="Edge types of each hop.", min_length=1)]
StartType = Annotated[
    str | list[int] | None,
    Field(
        description=(
            "Type of all start nodes by name, or of each by type id. Needed only where the edge "
            "types start at several node types and ids are per type."
        )
    ),
]
Fanouts = Annotated[
    list[HopCount] | dict[str, list[HopCount]],
    Field(
        description=(
            "Neighbors per node and hop: for every edge type, or by edge type. 0: none. -1: all."
        )
    ),
]
Weighted = Annotated[
    bool, Field(description="Sample in proportion to the weights; false: uniformly.")
]
WeightName = Annotated[
    str,
    Field(
        description=(
            "Name of the weights: a weight table of every type that is sampled. Empty: the rows' "
            "own weights."
        )
    ),
]
Filter = Annotated[
    str,
    Field(description="Filter on the nodes or edges, such as `price > 3`. Empty: no filter."),
]
ExcludedEdge = Annotated[list[NodeId], Field(min_length=2, max_length=3)]
Exclude = Annotated[
    list[ExcludedEdge] | dict[str, list[ExcludedEdge]] | None,
    Field(
        description=(
            "Edges that are as if they did not exist: `[source, destination]`, which is every edge "
            "from one to the other, or `[source, destination, edge id]`; by edge type if the call "
            "follows several. null: none."
        )
    ),
]
ReverseTypes = Annotated[
    dict[str, str] | None,
    Field(
        description=(
            "Edge type of the reverse edges of an edge type; those of excluded edges are excluded "
            "too. null: none."
        )
    ),
]
Replace = Annotated[bool, Field(description="Sample with replacement.")]
Direction = Annotated[
    Literal["out", "in"], Field(description="Follow edges forward, or in reverse.")
]
Expand = Annotated[
    Literal["first", "every"],
    Field(
        description=(
            "Sample the neighbors of a node in the hop after it was reached, or in every hop from "
            "then on."
        )
    ),
]
Measure = Annotated[
    Literal["sum", "sqrt", "squares"],
    Field(
        description=(
            "Importance of a neighbor, from the weights of the edges that lead to it: their sum, "
            "the square root of it, or the squared sums of each node, added up."
        )
    ),
]
Times = Annotated[
    list[int] | list[float] | None,
    Field(description="Time of each start node; later edges are ignored. null: no filter by time."),
]
StrictTimes = Annotated[bool, Field(description="Ignore edges of exactly that time too.")]
Strategy = Annotated[
    Literal["uniform", "last"],
    Field(description="Choice among the edges up to that time; last: the latest ones."),
]
WantTimes = Annotated[bool, Field(description="Return the times of edges; needs `times`.")]
WantWeights = Annotated[bool, Field(description="Return the weights of edges.")]
WantEdgeIds = Annotated[bool, Field(description="Return the ids of edges.")]
WantProbabilities = Annotated[bool, Field(description="Return the probability of each draw.")]
FeatureNames = Annotated[
    list[str] | dict[str, list[str]] | None,
    Field(
        description=(
            "Features of the nodes to return: names by node type, or one list of names, of which "
            "each type returns those that it has. null: none."
        )
    ),
]
Seed = Annotated[
    Annotated[int, Field(strict=True, ge=0, lt=1 << 64)]
    | Annotated[str, Field(strict=True, pattern=r"^[0-9]{1,20}$")]
    | None,
    Field(
        description=(
            "Seed that repeats a sample: an integer below 2^64, or its digits as text. null: a "
            "random one, which the reply contains."
        )
    ),
]
Version = Annotated[
    Annotated[int, Field(strict=True, ge=1, lt=_MAX_ID)] | None,
    Field(description="Published version to read; null: the current one."),
]
Timeout = Annotated[
    float, Field(gt=0, le=MAX_TIMEOUT_S, description="Seconds for the call; `Deadline` after that.")
]


class SampleRequest(HttpModel):
    """Base of the bodies."""

    NODE_IDS: ClassVar[tuple[str, ...]] = ()
    """Fields with ids of nodes."""


def _example(**fields: Any) -> ConfigDict:
    """Return the configuration of a model with an example of its body."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class SampleNodesRequest(SampleRequest):
    """Arguments of a sample of nodes."""

    model_config = _example(n=4, ntype="item", where="price > 3", seed=7)
    n: Count
    """Number of nodes. The first m of n nodes equal those of a request for m."""
    ntype: NodeTypeNames = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    replace: Replace = True
    probabilities: WantProbabilities = False
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleNodesLikeRequest(SampleRequest):
    """Arguments of a sample of nodes of the types of other nodes."""

    model_config = _example(src=[1, 2], n=3, ntype="user", seed=7)
    NODE_IDS = ("src",)
    src: Nodes
    n: Count
    """Number of nodes per row."""
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    unknown: Literal["error", "none"] = "error"
    """Refuse a node that does not exist, or return a row of -1."""
    probabilities: WantProbabilities = False
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleNegativesRequest(SampleRequest):
    """Arguments of a sample of negatives."""

    model_config = _example(
        pairs=[[1, 10], [2, 11]], n=5, ntype="item", exclude_edges="buys", seed=7
    )
    NODE_IDS = ("pairs", "exclude")
    pairs: list[NodeId] | list[Annotated[list[NodeId], Field(min_length=2, max_length=2)]]
    """Sources, or pairs of source and destination. A row of negatives is sampled for each; the
    destination of a pair is never a negative of its row.
    """
    n: Count
    """Number of negatives per row."""
    ntype: NodeTypeNames = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    shared: bool = False
    """Sample one row for all pairs; it leaves out the destinations of every pair."""
    exclude: list[list[NodeId]] | None = None
    """Further nodes that each row leaves out; -1 means none."""
    exclude_edges: TypeNames = None
    """Edge types. The destinations of such edges from a row's source are left out too."""
    probabilities: WantProbabilities = False
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleEdgesRequest(SampleRequest):
    """Arguments of a sample of edges."""

    model_config = _example(n=4, etype="buys", seed=7)
    n: Count
    """Number of edges."""
    etype: Annotated[
        TypeNames, Field(description="Edge types to sample from, together; null: all.")
    ] = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    replace: Replace = True
    probabilities: WantProbabilities = False
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleNeighborsRequest(SampleRequest):
    """Arguments of a sample of neighbors."""

    model_config = _example(nodes=[1, 2], etypes="buys", n=3, seed=7)
    NODE_IDS = ("nodes",)
    nodes: Nodes
    etypes: EdgeTypeNames = None
    n: Neighbors
    """Number of neighbors per node; a fraction: share of each node's edges, without replacement."""
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    replace: Replace = True
    direction: Direction = "out"
    times: Times = None
    strict: StrictTimes = False
    strategy: Strategy = "uniform"
    edge_times: WantTimes = False
    weights: WantWeights = True
    edge_ids: WantEdgeIds = False
    probabilities: WantProbabilities = False
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleFanoutRequest(SampleRequest):
    """Arguments of a sample of neighbors hop by hop."""

    model_config = _example(nodes=[1, 2], metapath=["buys", "bought_by"], fanouts=[5, 3], seed=7)
    NODE_IDS = ("nodes",)
    nodes: Nodes
    metapath: Metapath
    fanouts: list[Neighbors] = Field(min_length=1)
    """Neighbors per node of each hop; a fraction: share of each node's edges."""
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    replace: Replace = True
    direction: Direction = "out"
    times: Times = None
    strict: StrictTimes = False
    strategy: Strategy = "uniform"
    edge_times: WantTimes = False
    weights: WantWeights = True
    edge_ids: WantEdgeIds = False
    probabilities: WantProbabilities = False
    node_features: FeatureNames = None
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class RandomWalkRequest(SampleRequest):
    """Arguments of random walks."""

    model_config = _example(nodes=[1, 2], metapath=["buys", "bought_by"], length=4, seed=7)
    NODE_IDS = ("nodes",)
    nodes: Nodes
    metapath: Metapath | None = None
    """Edge types of each step, repeated if the walk is longer; null: every edge type."""
    length: Count | None = None
    """Number of steps; null: as many as `metapath` has."""
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    p: float = Field(default=1.0, ge=0.001, le=1000)
    """Return parameter of node2vec."""
    q: float = Field(default=1.0, ge=0.001, le=1000)
    """In-out parameter of node2vec."""
    restart: float = Field(default=0.0, ge=0, le=1)
    """Probability that a step returns to the start node."""
    direction: Direction = "out"
    walks: PositiveCount | None = None
    """Walks per node; null: one."""
    first_step: Literal["independent", "distinct"] = "independent"
    """distinct: the first steps of a node's walks lead to different neighbors; needs `walks`."""
    edge_ids: WantEdgeIds = False
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SamplePinsageRequest(SampleRequest):
    """Arguments of a sample of PinSAGE neighbors."""

    model_config = _example(nodes=[10, 11], metapath=["bought_by", "buys"], n=5, walks=20, seed=7)
    NODE_IDS = ("nodes",)
    nodes: Nodes
    metapath: Metapath | None = None
    """Edge types of each step of a traversal; null: one step along any edge."""
    n: Count
    """Number of nodes per row."""
    walks: PositiveCount
    """Walks per start node."""
    traversals: PositiveCount = 2
    """Maximum number of times that a walk traverses the metapath."""
    termination: float = Field(default=0.5, ge=0, le=1)
    """Probability that a walk ends before each traversal except the first."""
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    direction: Direction = "out"
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class PersonalizedPagerankRequest(SampleRequest):
    """Arguments of personalized PageRank. Nothing is sampled, so there is no seed."""

    model_config = _example(nodes=[1, 2], etypes=["buys", "bought_by"], k=5)
    NODE_IDS = ("nodes",)
    nodes: Nodes
    etypes: EdgeTypeNames = None
    k: PositiveCount
    """Number of nodes per row."""
    alpha: float = Field(default=0.15, gt=0, le=1)
    """Probability that a walk ends before each step."""
    epsilon: float = Field(default=1e-4, ge=1e-12, le=1)
    """Largest residual of a node per unit of its edges' total weight."""
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    direction: Direction = "out"
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleLayerRequest(SampleRequest):
    """Arguments of a sample of one layer."""

    model_config = _example(nodes=[1, 2], etypes="buys", n=4, seed=7)
    NODE_IDS = ("nodes",)
    nodes: Layers
    etypes: EdgeTypeNames = None
    n: Count
    """Number of nodes per new layer."""
    measure: Measure = "sum"
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    replace: Replace = True
    direction: Direction = "out"
    edge_ids: WantEdgeIds = False
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleLayersRequest(SampleRequest):
    """Arguments of a sample of several layers."""

    model_config = _example(nodes=[1, 2], metapath=["buys", "bought_by"], counts=[4, 4], seed=7)
    NODE_IDS = ("nodes",)
    nodes: Layers
    metapath: Metapath
    counts: list[Count] = Field(min_length=1)
    """Nodes per layer."""
    measure: Measure = "sum"
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    replace: Replace = True
    direction: Direction = "out"
    edge_ids: WantEdgeIds = False
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleSubgraphRequest(SampleRequest):
    """Arguments of a subgraph around seeds."""

    model_config = _example(seeds=[1, 2], fanouts=[5], etypes="buys", seed=7)
    NODE_IDS = ("seeds",)
    seeds: Nodes
    fanouts: Fanouts
    etypes: EdgeTypeNames = None
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    replace: Replace = False
    direction: Direction = "out"
    disjoint: bool = False
    """Build a separate tree per seed."""
    expand: Expand = "first"
    times: Times = None
    strict: StrictTimes = False
    strategy: Strategy = "uniform"
    edge_times: WantTimes = False
    weights: WantWeights = False
    edge_ids: WantEdgeIds = True
    node_features: FeatureNames = None
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleEgoSubgraphsRequest(SampleRequest):
    """Arguments of subgraphs with all edges among their nodes (ShaDow)."""

    model_config = _example(seeds=[1, 2], fanouts=[5], etypes="buys", seed=7)
    NODE_IDS = ("seeds",)
    seeds: Nodes
    fanouts: Fanouts
    etypes: EdgeTypeNames = None
    among: ReturnedEdgeTypes = None
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    replace: Replace = False
    direction: Direction = "out"
    disjoint: bool = True
    """Build a separate component per seed; false: one subgraph of all seeds' nodes."""
    expand: Expand = "first"
    weights: WantWeights = False
    edge_ids: WantEdgeIds = True
    node_features: FeatureNames = None
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleLaborRequest(SampleRequest):
    """Arguments of a subgraph sampled by LABOR."""

    model_config = _example(seeds=[1, 2], fanouts=[5], etypes="buys", seed=7)
    NODE_IDS = ("seeds",)
    seeds: Nodes
    fanouts: Fanouts
    etypes: EdgeTypeNames = None
    importance: int = Field(default=0, ge=-1, le=100)
    """Number of importance steps; -1: until the probabilities converge."""
    layer_dependency: bool = False
    """Use the same variate of a node in every hop, which gives fewer distinct nodes."""
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    direction: Direction = "out"
    expand: Expand = "every"
    weights: bool = True
    """Return the coefficient of each edge in a mean over its node's kept edges."""
    edge_ids: WantEdgeIds = True
    node_features: FeatureNames = None
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleHgtRequest(SampleRequest):
    """Arguments of a subgraph with a number of nodes per type and layer (HGT)."""

    model_config = _example(seeds=[1, 2], counts={"user": [4], "item": [4]}, ntype="user", seed=7)
    NODE_IDS = ("seeds",)
    seeds: Nodes
    counts: list[Count] | dict[str, list[Count]]
    """Nodes to sample per layer: for every node type, or by node type."""
    etypes: EdgeTypeNames = None
    among: ReturnedEdgeTypes = None
    ntype: StartType = None
    weighted: Weighted = True
    weight: WeightName = ""
    where: Filter = ""
    exclude: Exclude = None
    reverse_types: ReverseTypes = None
    direction: Direction = "out"
    weights: WantWeights = False
    edge_ids: WantEdgeIds = True
    node_features: FeatureNames = None
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0


class SampleGraphLabelsRequest(SampleRequest):
    """Arguments of a sample of graph labels."""

    model_config = _example(n=4, seed=7)
    n: Count
    """Number of labels. The first m of n labels equal those of a request for m."""
    seed: Seed = None
    version: Version = None
    timeout_s: Timeout = 30.0
