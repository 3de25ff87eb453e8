"""Tests of compressed text files: codecs, damage, bounds of memory, and refusals."""

from __future__ import annotations

import bz2
import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from asterism.formats import GraphSource, NodeChunk, open_source
from asterism.formats.compressed_files import open_text
from asterism.formats.csv_files import CsvOptions, CsvTable
from asterism_proto.errors import InvalidRequest

ROWS = 20_000
IDS = np.random.default_rng(1).permutation(ROWS)
TEXT = b"id,w\n" + b"".join(b"%d,%d\n" % (i, i % 7) for i in IDS.tolist())


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


CODECS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstd,
}
every_codec = pytest.mark.parametrize("suffix", CODECS)


def source(folder: Path, name: str, content: bytes) -> GraphSource:
    (folder / name).write_bytes(content)
    (folder / "schema.yaml").write_text(
        f"nodes: {{person: {{files: '{name}', id: id, weight: w}}}}\n"
    )
    return open_source(folder / "schema.yaml")


def chunks_of(folder: Path, name: str, content: bytes) -> list[NodeChunk]:
    return list(source(folder, name, content).node_chunks())


def assert_refused(folder: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        chunks_of(folder, name, content)


@every_codec
def test_compressed_text_is_read_as_the_text_itself(tmp_path: Path, suffix: str) -> None:
    data = CODECS[suffix](TEXT)
    (chunk,) = chunks_of(tmp_path, f"people.csv{suffix}", data)
    assert np.array_equal(chunk.ids, IDS)
    assert chunk.nbytes == len(data), "progress counts bytes of the compressed file"


@every_codec
def test_first_bytes_reveal_a_compression_without_suffix(tmp_path: Path, suffix: str) -> None:
    (chunk,) = chunks_of(tmp_path, "people.csv", CODECS[suffix](TEXT))
    assert np.array_equal(chunk.ids, IDS)


@every_codec
def test_concatenated_streams_are_read_one_after_the_other(tmp_path: Path, suffix: str) -> None:
    cut = 70_001  # within a row
    data = CODECS[suffix](TEXT[:cut]) + CODECS[suffix](TEXT[cut:])
    assert np.array_equal(
        np.concatenate([chunk.ids for chunk in chunks_of(tmp_path, f"people.csv{suffix}", data)]),
        IDS,
    )


@every_codec
@pytest.mark.parametrize("second", [False, True], ids=["first stream", "second stream"])
def test_truncated_stream_is_an_error_with_its_offset(
    tmp_path: Path, suffix: str, second: bool
) -> None:
    whole = CODECS[suffix](TEXT)
    data = (whole if second else b"") + whole[:-9]
    assert_refused(
        tmp_path,
        f"people.csv{suffix}",
        data,
        rf"people.csv{suffix}: .* at or before byte {len(data)} of {len(data)}, after \d+ bytes "
        r"of text \(Truncated compressed stream\); the file is cut off or damaged",
    )


@every_codec
@pytest.mark.parametrize("damage", ["garbage after", "byte within"])
def test_damaged_stream_is_an_error_and_loses_no_row_silently(
    tmp_path: Path, suffix: str, damage: str
) -> None:
    data = bytearray(CODECS[suffix](TEXT))
    if damage == "byte within":
        # Zstandard data without checksums show damage only in their structure.
        data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    else:
        data += b"no compressed data"
    assert_refused(
        tmp_path, f"people.csv{suffix}", bytes(data), f"people.csv{suffix}: .* cannot be read at"
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv.gz", TEXT, "a.csv.gz: named .gz, but does not begin like gzip data; rename it"),
        ("a.csv.zst", b"", r"a.csv.zst: named .zst, but .* \(it is empty\)"),
        ("a.csv", b"PK\x03\x04" + TEXT, "a.csv: compressed with zip; expected plain text, gzip"),
        ("a.csv", b"\xfd7zXZ\x00" + TEXT, "compressed with xz"),
        ("a.parquet.gz", gzip.compress(TEXT), "a.parquet.gz: expected a parquet file that is not"),
    ],
)
def test_other_compressions_and_wrong_suffixes_are_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    assert_refused(tmp_path, name, content, message)


def test_text_that_begins_like_a_codec_stays_text(tmp_path: Path) -> None:
    text = b"BZh9,w\n1,2\n"
    (tmp_path / "a.csv").write_bytes(text)
    with open_text(tmp_path / "a.csv", "a.csv") as file:
        assert file.read() == text


def bomb(folder: Path, line: bytes, count: int) -> Path:
    """Write gzip data that expand a thousandfold."""
    path = folder / "bomb.csv.gz"
    compressor = zlib.compressobj(9, wbits=31)
    with path.open("wb") as file:
        for _ in range(count):
            file.write(compressor.compress(line))
        file.write(compressor.flush())
    return path


def test_text_of_any_size_is_read_in_blocks(tmp_path: Path) -> None:
    path = bomb(tmp_path, b"7\n" * (1 << 17), 32)
    assert path.stat().st_size < 1 << 14
    table = CsvTable(
        [(path, "bomb")], CsvOptions(header=False, columns=("id",)), block_bytes=1 << 16
    )
    tracemalloc.start()
    rows = sum(batch.rows for batch in table.batches({"id": pa.int64()}, 1 << 16))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 1 << 22
    assert peak < 3 << 20, "of 8 MiB of text"


def test_endless_header_is_refused_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asterism.formats.text_files.MAX_LINE_BYTES", 1 << 20)
    path = bomb(tmp_path, b"x" * (1 << 20), 64)
    tracemalloc.start()
    with pytest.raises(InvalidRequest, match="bomb: expected lines of at most 1048576 bytes"):
        CsvTable([(path, "bomb")], CsvOptions()).describe("id")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20, "of 64 MiB of text"


def test_part_files_of_pglbox_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "edges").mkdir()
    (tmp_path / "edges" / "part-00000.gz").write_bytes(gzip.compress(b"1\t2\n2\t3\n"))
    (tmp_path / "nodes").write_bytes(zstd(b"u\t1\nu\t2\nu\t3\n"))
    (tmp_path / "graph.yaml").write_text(
        "graph_data_local_path: .\netype2files: 'u2c2u:edges'\nntype2files: 'u:nodes'\n"
        "symmetry: False\n"
    )
    graph = open_source(tmp_path / "graph.yaml", root=tmp_path)
    assert [chunk.ids.tolist() for chunk in graph.node_chunks()] == [[1, 2, 3]]
    assert [(c.src.tolist(), c.dst.tolist()) for c in graph.edge_chunks()] == [([1, 2], [2, 3])]


def test_chunked_graph_of_dgl_may_have_compressed_csv(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_bytes(gzip.compress(b"0 1\n1 0\n"))
    (tmp_path / "x.csv.bz2").write_bytes(bz2.compress(b"0.5\n1.5\n"))
    (tmp_path / "metadata.json").write_text(
        '{"graph_name": "g", "node_type": ["n"], "num_nodes_per_chunk": [[2]],'
        '"edge_type": ["n:e:n"], "num_edges_per_chunk": [[2]],'
        '"edges": {"n:e:n": {"format": {"name": "csv", "delimiter": " "}, "data": ["edges.csv"]}},'
        '"node_data": {"n": {"x": {"format": {"name": "csv"}, "data": ["x.csv.bz2"]}}},'
        '"edge_data": {}}'
    )
    graph = open_source(tmp_path)
    (nodes,) = graph.node_chunks()
    assert np.asarray(nodes.features["x"]).tolist() == [0.5, 1.5]
    assert [(c.src.tolist(), c.dst.tolist()) for c in graph.edge_chunks()] == [([0, 1], [1, 0])]
