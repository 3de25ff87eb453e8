"""Tests that identifiers use standard terms, and that packages do not share class names."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.kit.banned_words import FILE_METHODS, WORDS

ROOTS = ("proto", "client", "services", "tests", "examples")
DEPRECATED_FIELDS = frozenset({"last_beat_ms"})
"""Former names in the HTTP API and in a public record; the next release drops them."""
SAME_IDEA = {
    "AccessLimits": "the client's record of what metad keeps of a principal's limits",
    "ApiKey": "the client's record of what metad keeps of a key",
    "RoleGrant": "the client's record of what metad keeps of a grant",
    "Host": "the client's record of what metad keeps of a daemon",
    "Job": "the client's record of what metad keeps of a job",
    "Task": "the client's record of what metad keeps of a task",
    "JobPage": "a page of jobs: the result of metad's service, and what the web page shows of one",
    "FeatureStore": "features for a loader of GraphBolt or PyG; each is named as its base class",
    "NeighborSampler": "the sampler of DGL or PyG with this name, over a graph space",
    "NodeBatches": "epochs over nodes: a dataset of torch, and one of TensorFlow",
    "SubgraphSampler": "subgraphs of seeds for a loader: of GraphBolt, and of PyG",
    "RaggedNeighbors": "all neighbors of nodes: the client's record, and a storaged's share",
    "TemporalFilter": "the times of a request's nodes: in graphd, and split over storageds",
    "WeightHistogram": "rows by weight: of the partitions of a storaged, and their sum in graphd",
}
"""Class names that occur in several packages, each with the single idea that they share."""


def sources(root: Path, roots: tuple[str, ...] = ROOTS) -> Iterator[Path]:
    for name in roots:
        yield from (path for path in (root / name).rglob("*.py") if not path.stem.endswith("_pb2"))


def identifiers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg


def words(identifier: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)}


def test_a_word_is_found_inside_an_identifier() -> None:
    assert words("_StreamEdge_node2") == {"stream", "edge", "node"}


def test_no_identifier_has_a_banned_word(root: Path) -> None:
    allowed = DEPRECATED_FIELDS | FILE_METHODS
    found = {
        f"{path.relative_to(root)}: {identifier}"
        for path in sources(root)
        for identifier in identifiers(ast.parse(path.read_text()))
        if identifier not in allowed and words(identifier) & WORDS
    }
    assert sorted(found) == []


def test_names_of_modules_and_folders_have_no_banned_word(root: Path) -> None:
    found = {
        str(path.relative_to(root))
        for path in sources(root)
        if any(words(part) & WORDS for part in path.relative_to(root).with_suffix("").parts)
    }
    assert sorted(found) == []


def test_class_names_are_shared_only_for_one_idea(root: Path) -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for path in sources(root, ("proto", "client", "services")):
        package = path.relative_to(root).parts[1]
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                home = str(path.relative_to(root)) if package == "asterism" else package
                homes[node.name].add(home)
    shared = {name for name, packages in homes.items() if len(packages) > 1}
    assert sorted(shared - SAME_IDEA.keys()) == []
    assert sorted(SAME_IDEA.keys() - shared) == []
