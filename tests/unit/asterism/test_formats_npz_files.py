"""Tests of .npz archives, and of arrays of edges of both shapes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asterism.formats import EdgeChunk, GraphSource, open_source
from asterism_proto.errors import InvalidRequest

EDGES = 3_000
INDEX = np.random.default_rng(1).integers(0, 50, (2, EDGES))
WEIGHTS = np.arange(EDGES, dtype=np.float32)
SAVERS: dict[str, Callable[..., Any]] = {
    "stored": np.savez,
    "compressed": np.savez_compressed,
}
every_saver = pytest.mark.parametrize("save", SAVERS.values(), ids=SAVERS.keys())
every_order = pytest.mark.parametrize("order", ["C", "F"])


def source(folder: Path, edges: str, nodes: str = "count: 50", **options: int) -> GraphSource:
    (folder / "schema.yaml").write_text(
        f"nodes: {{n: {{{nodes}}}}}\nedges: {{'n:e:n': {{{edges}}}}}\n"
    )
    return open_source(folder / "schema.yaml", **options)


def all_edges(chunks: list[EdgeChunk]) -> tuple[list[int], list[int]]:
    src, dst = (np.concatenate([getattr(c, end) for c in chunks]) for end in ("src", "dst"))
    return src.tolist(), dst.tolist()


def assert_refused(folder: Path, edges: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        list(source(folder, edges).edge_chunks())


@every_saver
@every_order
@pytest.mark.parametrize("shape", ["[2, E]", "[E, 2]"])
def test_arrays_of_edges_are_read_in_either_shape_and_order(
    tmp_path: Path, save: Callable[..., Any], order: str, shape: str
) -> None:
    index = np.array(INDEX if shape == "[2, E]" else INDEX.T, order=order)
    save(tmp_path / "g.npz", edge_index=index, w=WEIGHTS, x=np.zeros(7))
    subscript = "[{}, :]" if shape == "[2, E]" else "[:, {}]"
    for form in ("[{}]", subscript):
        src, dst = (f"edge_index{form.format(i)}" for i in (0, 1))
        chunks = list(
            source(
                tmp_path,
                f"files: g.npz, src: '{src}', dst: '{dst}', weight: w",
                chunk_rows=700,
            ).edge_chunks()
        )
        assert len(chunks) == 5
        assert all_edges(chunks) == (INDEX[0].tolist(), INDEX[1].tolist())
        assert np.concatenate([c.weights for c in chunks]).tolist() == WEIGHTS.tolist()


@every_saver
def test_several_archives_follow_each_other(tmp_path: Path, save: Callable[..., Any]) -> None:
    save(tmp_path / "a.npz", e=INDEX[:, :1000])
    save(tmp_path / "b.npz", e=INDEX[:, 1000:])
    graph = source(tmp_path, "files: '*.npz', src: 'e[0]', dst: 'e[1]'")
    assert graph.total_rows == 50 + EDGES
    assert all_edges(list(graph.edge_chunks())) == (INDEX[0].tolist(), INDEX[1].tolist())


@every_saver
def test_arrays_of_nodes_are_features(tmp_path: Path, save: Callable[..., Any]) -> None:
    x = np.random.default_rng(2).random((50, 3)).astype(">f4")
    save(tmp_path / "g.npz", e=INDEX, x=x, odd=np.zeros(5))
    graph = source(
        tmp_path, "files: g.npz, src: 'e[0]', dst: 'e[1]'", "files: g.npz, features: {x: {}}"
    )
    (chunk,) = graph.node_chunks()
    assert np.array_equal(np.asarray(chunk.features["x"]), x)
    assert chunk.ids.tolist() == list(range(50))


def test_two_edges_are_ambiguous_without_an_axis(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", e=np.array([[0, 1], [2, 3]]))
    np.save(tmp_path / "e.npy", np.array([[0, 1], [2, 3]]))
    for files in ("g.npz", "{e: e.npy}"):
        assert_refused(
            tmp_path,
            f"files: {files}, src: 'e[0]', dst: 'e[1]'",
            r"shape \[2, 2\] has an edge per row or per column: expected 'e\[0, :\]' and",
        )
        for src, dst, expected in (
            ("e[0, :]", "e[1, :]", ([0, 1], [2, 3])),
            ("e[:, 0]", "e[:, 1]", ([0, 2], [1, 3])),
        ):
            graph = source(tmp_path, f"files: {files}, src: '{src}', dst: '{dst}'")
            assert all_edges(list(graph.edge_chunks())) == expected


def test_shape_of_several_arrays_is_that_of_the_larger(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[0, 1], [2, 3]]))
    np.save(tmp_path / "b.npy", np.array([[4, 5, 6], [7, 8, 9]]))
    schema = "files: {e: [a.npy, b.npy]}, src: 'e[0]', dst: 'e[1]'"
    chunks = list(source(tmp_path, schema).edge_chunks())
    assert all_edges(chunks) == ([0, 1, 4, 5, 6], [2, 3, 7, 8, 9])
    np.save(tmp_path / "a.npy", np.zeros((5, 2), np.int64))
    assert_refused(tmp_path, schema, r"expected all arrays of 'e' in one shape, \[2, E\] or")


def test_rows_of_other_arrays_are_named_by_their_axis(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.array([[0, 1, 2, 3], [1, 2, 3, 4], [7, 8, 9, 5]]))
    schema = "files: {t: t.npy}, src: 't[0, :]', dst: 't[1, :]', weight: 't[2, :]'"
    (chunk,) = source(tmp_path, schema).edge_chunks()
    assert chunk.weights is not None
    assert chunk.weights.tolist() == [7, 8, 9, 5]
    assert_refused(
        tmp_path,
        "files: {t: t.npy}, src: 't[0, :]', dst: 't[3, :]'",
        r"t.npy: expected \[4 or more, E\] as the shape, for t\[3, :\], found \[3, 4\]",
    )


def test_archives_without_the_array_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", e=INDEX, w=WEIGHTS)
    files = "files: g.npz, src: 'e[0]', dst: 'e[1]'"
    assert_refused(tmp_path, f"{files}, weight: x", "g.npz: expected a column 'x', it has e, w")
    np.savez(tmp_path / "g.npz", e=INDEX, w=WEIGHTS[:-1])
    assert_refused(
        tmp_path, f"{files}, weight: w", r"g.npz\['e'\]: expected 2999 .* rows, found 3000"
    )
    np.savez(tmp_path / "g.npz", e=np.array([{}], object))
    assert_refused(tmp_path, files, r"g.npz\['e'\]: expected an array of numbers, found Python obj")
    assert_refused(
        tmp_path,
        "files: {e: g.npz}, src: 'e[0]', dst: 'e[1]'",
        "g.npz: expected a list of .npz files only; their arrays have names",
    )


@every_saver
def test_damaged_archives_are_refused(tmp_path: Path, save: Callable[..., Any]) -> None:
    save(tmp_path / "g.npz", e=INDEX)
    data = (tmp_path / "g.npz").read_bytes()
    schema = "files: g.npz, src: 'e[0]', dst: 'e[1]'"
    (tmp_path / "g.npz").write_bytes(data[:-30])
    assert_refused(tmp_path, schema, "g.npz: expected a complete .npz file")
    if save is np.savez_compressed:
        middle = len(data) // 2
        (tmp_path / "g.npz").write_bytes(data[:middle] + bytes(64) + data[middle + 64 :])
        assert_refused(tmp_path, schema, r"g.npz\['e'\]: cannot be decompressed after byte \d+")


def test_compressed_arrays_are_read_in_windows(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "g.npz", e=np.zeros((2, 1 << 20), np.int64))
    graph = source(tmp_path, "files: g.npz, src: 'e[0]', dst: 'e[1]'", chunk_rows=1 << 14)
    tracemalloc.start()
    rows = sum(len(chunk) for chunk in graph.edge_chunks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 1 << 20
    assert peak < 4 << 20, "of 16 MiB"
