"""DGL's binary files: round trips, byte-equal rewrites of DGL's own files, damage refused."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from asterism.export.dgl_graph_files import (
    Coo,
    Csr,
    DglGraph,
    GraphFile,
    Relation,
    read_graphs,
    write_graphs,
)
from asterism.export.dgl_tensor_files import ArrayStream, read_tensors, row_slices, write_tensors
from asterism_proto.errors import Corrupt, Internal, InvalidRequest

DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "V2")
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
shapes = arrays_of.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    dtype, shape = np.dtype(draw(st.sampled_from(DTYPES))), draw(shapes)
    raw = draw(
        st.binary(
            min_size=dtype.itemsize * int(np.prod(shape)),
            max_size=dtype.itemsize * int(np.prod(shape)),
        )
    )
    return np.frombuffer(raw, dtype).reshape(shape)


tensors = st.dictionaries(names, arrays(), max_size=5)
relaxed = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def tensor_bytes(content: dict[str, NDArray[Any]]) -> bytes:
    out = io.BytesIO()
    write_tensors(out, {name: ArrayStream.from_array(array) for name, array in content.items()})
    return out.getvalue()


def graph_bytes(content: GraphFile) -> bytes:
    out = io.BytesIO()
    write_graphs(out, content)
    return out.getvalue()


def save(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@st.composite
def graphs(draw: st.DrawFn) -> DglGraph:
    sizes = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
    relations, edata = [], []
    for _ in range(draw(st.integers(0, 3))):
        src, dst = draw(st.integers(0, len(sizes) - 1)), draw(st.integers(0, len(sizes) - 1))
        edges = draw(st.integers(0, 8)) if sizes[src] and sizes[dst] else 0
        row, col = (
            draw(arrays_of.arrays(np.int64, edges, elements=st.integers(0, max(size - 1, 0))))
            for size in (sizes[src], sizes[dst])
        )
        mask = draw(st.integers(1, 7))
        indptr = np.zeros(sizes[src] + 1, np.int64)
        matrix = Csr(
            rows=sizes[src],
            cols=sizes[dst],
            indptr=ArrayStream.from_array(indptr),
            indices=ArrayStream.from_array(col),
            data=ArrayStream.from_array(np.arange(edges)),
            sorted=draw(st.booleans()),
        )
        relations.append(
            Relation(
                src_type=src,
                dst_type=dst,
                coo=Coo(
                    rows=sizes[src],
                    cols=sizes[dst],
                    row=ArrayStream.from_array(row),
                    col=ArrayStream.from_array(col),
                    row_sorted=draw(st.booleans()),
                )
                if mask & 1
                else None,
                csr=matrix if mask & 2 else None,
                csc=matrix if mask & 4 else None,
            )
        )
        edata.append({name: ArrayStream.from_array(array) for name, array in draw(tensors).items()})
    return DglGraph(
        ntypes=tuple(f"n{i}" for i in range(len(sizes))),
        etypes=tuple(f"e{i}" for i in range(len(relations))),
        num_nodes=tuple(sizes),
        relations=tuple(relations),
        ndata=tuple(
            {name: ArrayStream.from_array(array) for name, array in draw(tensors).items()}
            for _ in sizes
        ),
        edata=tuple(edata),
    )


@relaxed
@given(tensors)
def test_tensors_round_trip(tmp_path: Path, content: dict[str, NDArray[Any]]) -> None:
    loaded = read_tensors(save(tmp_path / "t.dgl", tensor_bytes(content)))
    assert list(loaded) == list(content)
    for name, array in content.items():
        assert (loaded[name].dtype, loaded[name].shape, loaded[name].tobytes()) == (
            array.dtype,
            array.shape,
            array.tobytes(),
        )


@relaxed
@given(st.lists(graphs(), max_size=3), tensors)
def test_graphs_round_trip(
    tmp_path: Path, content: list[DglGraph], labels: dict[str, NDArray[Any]]
) -> None:
    written = graph_bytes(
        GraphFile(
            graphs=tuple(content),
            labels={name: ArrayStream.from_array(array) for name, array in labels.items()},
        )
    )
    loaded = read_graphs(save(tmp_path / "g.dgl", written))
    assert graph_bytes(loaded) == written
    assert list(loaded.labels) == list(labels)
    for graph, expected in zip(loaded.graphs, content, strict=True):
        assert (graph.ntypes, graph.etypes, graph.num_nodes) == (
            expected.ntypes,
            expected.etypes,
            expected.num_nodes,
        )
        for relation, other in zip(graph.relations, expected.relations, strict=True):
            assert (relation.src_type, relation.dst_type) == (other.src_type, other.dst_type)
            assert [m is None for m in (relation.coo, relation.csr, relation.csc)] == [
                m is None for m in (other.coo, other.csr, other.csc)
            ]
            if relation.coo is not None and other.coo is not None:
                np.testing.assert_array_equal(relation.coo.row.array(), other.coo.row.array())
                np.testing.assert_array_equal(relation.coo.col.array(), other.coo.col.array())
                assert (relation.coo.rows, relation.coo.cols, relation.coo.row_sorted) == (
                    other.coo.rows,
                    other.coo.cols,
                    other.coo.row_sorted,
                )


@relaxed
@given(arrays(), st.integers(1, 4))
def test_an_array_in_pieces_is_the_same_file(array: NDArray[Any], rows: int) -> None:
    pieces = ArrayStream(
        dtype=array.dtype, shape=array.shape, pieces=lambda: row_slices(array, rows)
    )
    out = io.BytesIO()
    write_tensors(out, {"x": pieces})
    assert out.getvalue() == tensor_bytes({"x": array})
    np.testing.assert_array_equal(
        pieces.array().view(np.uint8) if array.size else 0,
        array.view(np.uint8) if array.size else 0,
    )


@relaxed
@given(tensors, st.data())
def test_truncated_or_extended_tensor_file_is_corrupt(
    tmp_path: Path, content: dict[str, NDArray[Any]], data: st.DataObject
) -> None:
    complete = tensor_bytes(content)
    for broken in (complete[: data.draw(st.integers(0, len(complete) - 1))], complete + b"\0"):
        with pytest.raises(Corrupt, match=r"t\.dgl, byte"):
            read_tensors(save(tmp_path / "t.dgl", broken))


@relaxed
@given(graphs(), st.data())
def test_truncated_graph_file_is_corrupt(
    tmp_path: Path, content: DglGraph, data: st.DataObject
) -> None:
    complete = graph_bytes(GraphFile(graphs=(content,)))
    with pytest.raises(Corrupt):
        read_graphs(
            save(tmp_path / "g.dgl", complete[: data.draw(st.integers(0, len(complete) - 1))])
        )


@relaxed
@given(graphs(), st.data())
def test_a_damaged_byte_is_found_or_harmless_but_never_a_crash(
    tmp_path: Path, content: DglGraph, data: st.DataObject
) -> None:
    complete = bytearray(graph_bytes(GraphFile(graphs=(content,))))
    complete[data.draw(st.sampled_from([*range(32), *range(4096, len(complete))]))] ^= data.draw(
        st.integers(1, 255)
    )
    with contextlib.suppress(Corrupt):
        read_graphs(save(tmp_path / "g.dgl", bytes(complete)))


def test_tensor_without_dimensions_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"shape \[1\]"):
        tensor_bytes({"x": np.array(3.0)})


@pytest.mark.parametrize("dtype", ["bool", "complex64", "U3"])
def test_a_dtype_that_dgl_has_no_code_for_is_refused(dtype: str) -> None:
    with pytest.raises(InvalidRequest, match="convert"):
        tensor_bytes({"x": np.zeros(3, dtype)})


def test_big_endian_and_strided_arrays_are_normalized() -> None:
    array = np.arange(12, dtype=">i4").reshape(3, 4).T
    assert tensor_bytes({"x": array}) == tensor_bytes(
        {"x": np.ascontiguousarray(array).astype("<i4")}
    )


def test_pieces_that_do_not_fill_the_shape_are_an_error() -> None:
    with pytest.raises(Internal, match="16 bytes instead of 24"):
        write_tensors(
            io.BytesIO(),
            {
                "x": ArrayStream(
                    dtype=np.dtype(np.int64), shape=(3,), pieces=lambda: (np.zeros(2, np.int64),)
                )
            },
        )


# -- files written by DGL itself -------------------------------------------------------------------


def test_graph_files_of_dgl_are_rewritten_byte_for_byte(shared: Path) -> None:
    files = [
        *(shared / "dgl/truth").rglob("graph.dgl"),
        shared / "dgl/truth/dgl-2.1.0/hetero_full.bin",
    ]
    assert len(files) > 30
    for path in files:
        original, rewritten = path.read_bytes(), graph_bytes(read_graphs(path))
        # DGL does not initialize the rest of the header.
        assert (rewritten[:32], rewritten[4096:]) == (original[:32], original[4096:]), path


def test_tensor_files_of_dgl_are_rewritten_byte_for_byte(shared: Path) -> None:
    files = [
        p
        for p in (shared / "dgl/truth").rglob("*.dgl")
        if p.name not in ("graph.dgl", "tensor_scalar.dgl")
    ]
    assert len(files) > 80
    for path in files:
        assert tensor_bytes(read_tensors(path)) == path.read_bytes(), path


def test_part_written_by_dgl_reads_as_dgl_reads_it(shared: Path) -> None:
    truth = shared / "dgl/truth/dgl-2.1.0"
    dumps = sorted(truth.rglob("part*_as_numpy.npz"))
    assert len(dumps) > 20
    for dump in dumps:
        folder = dump.parent / dump.name.removesuffix("_as_numpy.npz")
        (graph,) = read_graphs(folder / "graph.dgl").graphs
        loaded = {f"ndata/{k}": c.array() for k, c in graph.ndata[0].items()} | {
            f"edata/{k}": c.array() for k, c in graph.edata[0].items()
        }
        loaded |= {
            f"nfeat/{k.replace('/', '|')}": v
            for k, v in read_tensors(folder / "node_feat.dgl").items()
        }
        loaded |= {
            f"efeat/{k.replace('/', '|')}": v
            for k, v in read_tensors(folder / "edge_feat.dgl").items()
        }
        if (coo := graph.relations[0].coo) is not None:
            loaded |= {"src": coo.row.array(), "dst": coo.col.array()}
        with np.load(dump) as expected:
            assert set(expected.files) - {"src", "dst"} == set(loaded) - {"src", "dst"}
            for name in loaded:
                np.testing.assert_array_equal(
                    loaded[name], expected[name], err_msg=f"{dump}: {name}"
                )
