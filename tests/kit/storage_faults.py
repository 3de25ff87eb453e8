"""Damage to the files of storaged and metad, and the outcomes of reading them.

It covers every kind of file, its readers, and single flipped bits. ``python -m
tests.kit.storage_faults [POSITIONS]`` prints the table of outcomes.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from asterism_daemonkit.daemon_identity import FILE_NAME as IDENTITY
from asterism_daemonkit.daemon_identity import open_folder
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import AsterismError, Corrupt
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_standalone import published_versions_file
from metad.store.rocksdb_store import RocksStore
from storaged.build.completion_records import CompletedPart, part_folder
from storaged.cluster_identity import ClusterIdentity
from storaged.store import block_store, keys
from storaged.store.alias_table_store import AliasTableStore
from storaged.store.block_store import BlockStore
from storaged.store.checksums import check_image
from storaged.store.image import PartImage, open_part
from tests.kit.building import BuildResult, Op, blocks_of, run_build

SCHEMA = Schema(
    node_types=(
        NodeType(
            name="a", weighted=True, features=(Feature(name="x"), Feature(name="t", kind="bytes"))
        ),
    ),
    edge_types=(
        EdgeType(
            src_type="a", relation="r", dst_type="a", weighted=True, features=(Feature(name="y"),)
        ),
    ),
    parts=1,
    direction="both",
)
UNCLEAN, CLEAN, OPEN = "after an unclean stop", "after a clean stop", "while open"
EQUAL, DIFFERENT = "equal", "DIFFERENT"
_CLUSTER = "0123456789abcdef"
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Files of one kind at one moment."""

    kind: str
    moment: str
    folder: Path
    files: tuple[Path, ...]
    """Paths relative to the folder."""
    read: Callable[[Path], object]
    """Function that returns the content of a folder as a comparable value.

    It raises what a daemon would report.
    """
    copied: bool = False
    """True if reading changes files; each reading then gets a copy."""
    open_before_damage: Callable[[Path], Callable[[], object]] | None = None
    """Function that opens a folder before its files are altered, and returns the reader to use
    after.
    """


def flip(path: Path, bit: int) -> None:
    """Flip one bit of a file, in place."""
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def positions(size: int, count: int, seed: int) -> list[int]:
    """Return bit positions in a file of ``size`` bytes, ascending.

    They cover its first and last bytes, and random others.
    """
    bits = 8 * size
    if bits <= count:
        return list(range(bits))
    selected = {7, bits - 1, *random.Random(seed).sample(range(bits), count)}
    return sorted(selected)[:count]


def outcomes(subject: Subject, count: int) -> Counter[str]:
    """Flip ``count`` single bits of a subject's files, one at a time, and count the outcomes."""
    counts: Counter[str] = Counter()
    with _scratch() as scratch:
        expected = _read(subject, scratch, None, 0)
        for file_index, file in enumerate(subject.files):
            size = (subject.folder / file).stat().st_size
            bits_per_file = -(-count // len(subject.files))
            for bit in positions(size, bits_per_file, file_index):
                counts[_outcome(subject, scratch, file, bit, expected)] += 1
    return counts


def _outcome(subject: Subject, scratch: Path, file: Path | None, bit: int, expected: object) -> str:
    try:
        return EQUAL if _read(subject, scratch, file, bit) == expected else DIFFERENT
    except AsterismError as error:
        known_locations = (
            str(scratch),
            str(subject.folder),
            "BlockKey(",
            "table block",
            "table of part",
        )
        return (
            type(error).__name__
            if any(location in error.message for location in known_locations)
            else f"UNNAMED {error.message}"
        )
    except Exception as error:  # a daemon would end with a traceback
        return f"UNTYPED {error!r}"


def _read(subject: Subject, scratch: Path, file: Path | None, bit: int) -> object:
    folder = subject.folder
    if subject.copied:
        folder = scratch / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(subject.folder, folder)
    try:
        if subject.open_before_damage is None:
            if file is not None:
                flip(folder / file, bit)
            return subject.read(folder)
        read = subject.open_before_damage(folder)
        if file is not None:
            flip(folder / file, bit)
        return read()
    finally:
        if file is not None and not subject.copied:
            flip(folder / file, bit)


@contextmanager
def _scratch() -> Iterator[Path]:
    """Create a folder, in memory if possible: thousands of small databases are opened in it."""
    with tempfile.TemporaryDirectory(
        dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
    ) as folder:
        yield Path(folder)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut in half": lambda path: _rewrite(path, path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: _rewrite(path, b""),
    "missing": lambda path: path.unlink(),
}


def _rewrite(path: Path, content: bytes) -> None:
    path.unlink()  # it may be a hard link; the other links keep their content
    path.write_bytes(content)


def damage_outcomes(subject: Subject) -> dict[tuple[str, str], str]:
    """Damage each file of a closed subject in each way; return outcomes by (damage, file)."""
    outcomes_by_file = {}
    with _scratch() as scratch:
        copied_subject = replace(subject, copied=True)
        expected = _read(copied_subject, scratch, None, 0)
        for name, damage in DAMAGES.items():
            for file in subject.files:
                shutil.rmtree(scratch / "damaged", ignore_errors=True)
                shutil.copytree(subject.folder, scratch / "damaged")
                damage(scratch / "damaged" / file)
                outcomes_by_file[name, file.name] = _outcome(
                    replace(copied_subject, folder=scratch / "damaged"), scratch, None, 0, expected
                )
    return outcomes_by_file


# -- what is read ----------------------------------------------------------------------------------


def read_catalog(folder: Path) -> object:
    """Return every key of a catalog."""
    store = RocksStore(folder)
    try:
        return store.range(b"")
    finally:
        store.close()


def _blocks(store: BlockStore) -> object:
    blocks = []
    base_kinds = (
        block_store.NODES,
        block_store.OUT_EDGES,
        block_store.IN_EDGES,
        block_store.EDGE_FEATURES,
    )
    for kind in (*base_kinds, *(kind | keys.COLUMNS for kind in base_kinds)):
        refs = store.refs(0, (kind,), 0, store.loads())
        blocks += [
            (ref, {name: array.tobytes() for name, array in store.read(ref).items()})
            for ref in refs
        ]
    alive = store.exists(0, np.arange(4000), 9, store.loads()).tobytes()
    return blocks, alive, store.loads()


def read_graph(folder: Path) -> object:
    """Return every block of a graph database."""
    store = BlockStore.open(folder, SCHEMA)
    try:
        return _blocks(store)
    finally:
        store.close()


def _open_graph(folder: Path) -> Callable[[], object]:
    store = BlockStore.open(folder, SCHEMA)

    def read() -> object:
        try:
            return _blocks(store)
        finally:
            store.close()

    return read


def image_content(image: PartImage) -> object:
    """Return the entire content of an image."""
    return (
        image.digest,
        hashlib.sha256(repr(image).encode()).hexdigest(),
        [_hashed(each) for each in (*image.nodes, *image.edges)],
    )


def _hashed(record: object) -> str:
    digest = hashlib.sha256()

    def visit(value: object) -> None:
        if isinstance(value, np.ndarray):
            digest.update(np.ascontiguousarray(value).tobytes())
        elif hasattr(value, "__dataclass_fields__"):
            for name in value.__dataclass_fields__:
                visit(getattr(value, name))
        elif isinstance(value, dict):
            for each in value.values():
                visit(each)
        elif isinstance(value, tuple):
            for each in value:
                visit(each)

    visit(record)
    return digest.hexdigest()


def _image_reader(digest: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        image = open_part(folder, verify=True)
        if image.digest != digest:
            raise Corrupt(f"image {folder}: its digest is {image.digest}")
        return image_content(image)

    return read


def _image_scrubber(digest: str) -> Callable[[Path], Callable[[], object]]:
    def open_image(folder: Path) -> Callable[[], object]:
        open_part(folder, verify=False)
        return lambda: check_image(folder, digest, lambda _: None)

    return open_image


def _table_reader(built_images: BuildResult) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        tables = AliasTableStore.open(folder, read_only=True)
        try:
            return [
                [
                    column.tobytes()
                    for columns in tables.blocks(
                        0,
                        _kind(total.element.number),
                        0,
                        total.weight_name,
                        total.positive,
                        final=True,
                    )
                    for column in columns
                ]
                for total in built_images.results[0].totals
            ]
        finally:
            tables.close()

    return read


def _kind(element: int) -> int:
    return keys.B1 | (keys.EDGE_TABLE if element == 2 else 0)


def _read_mark(folder: Path) -> object:
    completion = CompletedPart.read(folder, 0)
    if completion is None:
        raise Corrupt(f"{folder}: the part is built again")
    return completion.input, completion.result, completion.units


def _read_identity(folder: Path) -> object:
    identity = open_folder(folder, "storaged")
    identity.release()
    return identity.uuid, identity.incarnation


def _read_cluster(folder: Path) -> object:
    cluster = ClusterIdentity(folder / "cluster")
    cluster.check(_CLUSTER)
    return cluster.cluster_id


def _read_published(folder: Path) -> object:
    record = published_versions_file.read_published(folder)
    record.DiscardUnknownFields()
    return record.SerializeToString(deterministic=True)


# -- what there is ---------------------------------------------------------------------------------


def generate_load(seed: int, nodes: int = 3_000, edges: int = 9_000) -> list[Op]:
    """Return a load of nodes with strings, and of edges."""
    rng = np.random.default_rng(seed)
    ids = np.arange(nodes)
    texts = np.arange(nodes * 4, dtype=np.uint8)
    values = {
        "src": rng.integers(0, nodes, edges),
        "dst": rng.integers(0, nodes, edges),
        "eid": np.arange(edges) + seed * edges,
    }
    return [
        Op(
            kind=block_store.NODES,
            type_id=0,
            arrays={
                "ids": ids,
                "weight": rng.random(nodes, np.float32),
                "f:x": rng.random(nodes, np.float32),
                "f:t.indptr": np.arange(nodes + 1, dtype=np.int64) * 4,
                "f:t.values": texts,
            },
        ),
        Op(
            kind=block_store.OUT_EDGES,
            type_id=0,
            arrays={
                **values,
                "weight": rng.random(edges, np.float32),
                "f:y": rng.random(edges, np.float32),
            },
        ),
    ]


def _names(folder: Path, *patterns: str) -> tuple[Path, ...]:
    paths = [
        path.relative_to(folder)
        for pattern in patterns
        for path in sorted(folder.glob(pattern))
        if path.stat().st_size
    ]
    assert paths, (folder, patterns)
    return tuple(paths)


def _copied_while_open(folder: Path, name: str) -> Path:
    """Copy a folder as a killed process leaves it: nothing is flushed by closing a database."""
    copy = folder.with_name(name)
    shutil.copytree(folder, copy)
    return copy


def catalogs(folder: Path) -> list[Subject]:
    """Return a catalog with a log, and one that was closed."""
    catalog = folder / "catalog"
    for first_key in (0, 60):
        store = RocksStore(catalog)
        for key_number in range(first_key, first_key + 60):
            store.write(
                {f"1/key/{key_number:05d}".encode(): random.Random(key_number).randbytes(80)}
            )
        if not first_key:
            store.close()
    unclean_copy = _copied_while_open(catalog, "catalog-unclean")
    store.close()
    subjects_found = []
    for moment, source in ((UNCLEAN, unclean_copy), (CLEAN, catalog)):
        for kind, pattern in DATABASE_FILES[:-1]:
            if kind == "write-ahead log" and moment == CLEAN:
                continue
            subjects_found.append(
                Subject(
                    kind=f"catalog: {kind}",
                    moment=moment,
                    folder=source,
                    files=_names(source, pattern),
                    read=read_catalog,
                    copied=True,
                )
            )
    return subjects_found


DATABASE_FILES = (
    ("SST", "*.sst"),
    ("write-ahead log", "*.log"),
    ("MANIFEST", "MANIFEST-*"),
    ("CURRENT", "CURRENT"),
    ("OPTIONS", "OPTIONS-*"),
    ("blob", "*.blob"),
)


def _write(store: BlockStore, load_id: int, load: Sequence[Op]) -> None:
    for chunk, op in enumerate(load):
        store.write(blocks_of(SCHEMA, load_id, chunk, op))


def graphs(folder: Path) -> list[Subject]:
    """Return a graph database with a log, and one that was closed."""
    database = folder / "graph"
    store = BlockStore.open(database, SCHEMA)
    _write(store, 1, generate_load(1))
    store.close()
    store = BlockStore.open(database, SCHEMA)
    _write(store, 2, generate_load(2, nodes=200, edges=300))
    unclean_copy = _copied_while_open(database, "graph-unclean")
    store.close()
    subjects_found = []
    for moment, source in ((UNCLEAN, unclean_copy), (CLEAN, database), (OPEN, database)):
        for kind, pattern in DATABASE_FILES:
            if (kind == "write-ahead log" and moment != UNCLEAN) or (
                kind in ("MANIFEST", "CURRENT", "OPTIONS") and moment == OPEN
            ):
                continue
            subjects_found.append(
                Subject(
                    kind=f"graph: {kind}",
                    moment=moment,
                    folder=source,
                    files=_names(source, pattern),
                    read=read_graph,
                    copied=True,
                    open_before_damage=_open_graph if moment == OPEN else None,
                )
            )
    return subjects_found


def builds(folder: Path) -> list[Subject]:
    """Return the image, the stat database and the completion mark of a built partition."""
    (folder / "built").mkdir()
    built_images = run_build(folder / "built", SCHEMA, [generate_load(1)])
    image, digest = part_folder(built_images.output, 0), built_images.digests[0]
    read_image = _image_reader(digest)
    arrays, manifest = _names(image, "*.bin"), _names(image, "manifest.json")
    subjects_found = []
    for kind, files in (("image: arrays", arrays), ("image: manifest", manifest)):
        subjects_found += [
            Subject(kind=kind, moment=moment, folder=image, files=files, read=read_image)
            for moment in (UNCLEAN, CLEAN)
        ]
        subjects_found.append(
            Subject(
                kind=kind,
                moment=OPEN,
                folder=image,
                files=files,
                read=read_image,
                open_before_damage=_image_scrubber(digest),
            )
        )
    for kind, pattern in (
        ("SST", "stat/*.sst"),
        ("MANIFEST", "stat/MANIFEST-*"),
        ("CURRENT", "stat/CURRENT"),
        ("OPTIONS", "stat/OPTIONS-*"),
    ):
        subjects_found.append(
            Subject(
                kind=f"tables: {kind}",
                moment=CLEAN,
                folder=built_images.output,
                files=_names(built_images.output, pattern),
                read=_table_reader(built_images),
                copied=True,
            )
        )
    subjects_found.append(
        Subject(
            kind="done/*.json",
            moment=CLEAN,
            folder=built_images.output,
            files=_names(built_images.output, "done/*.json"),
            read=_read_mark,
        )
    )
    return subjects_found


def small_files(folder: Path) -> list[Subject]:
    """Return files of a few words."""
    target = folder / "small"
    open_folder(target, "storaged").release()
    ClusterIdentity(target / "cluster").check(_CLUSTER)
    reply = metad_pb.PollReply()
    route = reply.spaces.add()
    route.space.name, route.space.space_id = "shop", 1
    route.versions.add(version=3, digest="d" * 64).totals.add(
        part=0, element=1, count=5, positive=5, weight=2.5
    )
    published_versions_file.PublishedFile(target).update(reply)
    return [
        Subject(kind=name, moment=CLEAN, folder=target, files=(Path(name),), read=read, copied=True)
        for name, read in (
            (IDENTITY, _read_identity),
            ("cluster", _read_cluster),
            (published_versions_file.FILE_NAME, _read_published),
        )
    ]


def subjects(folder: Path) -> list[Subject]:
    """Return subjects of every kind of file."""
    return [*catalogs(folder), *graphs(folder), *builds(folder), *small_files(folder)]


Row = tuple[str, str, Counter[str]]


def matrix(folder: Path, count: int) -> list[Row]:
    """Flip ``count`` bits of each kind of file at each moment."""
    return [
        (subject.kind, subject.moment, outcomes(subject, count)) for subject in subjects(folder)
    ]


def unexpected_rows(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """Return the rows that are neither equal nor a typed error with the name of the file."""
    return [
        (kind, moment, outcome)
        for kind, moment, counts in rows
        for outcome in counts
        if outcome.split()[0] in (DIFFERENT, "UNTYPED", "UNNAMED")
    ]


def table(rows: Sequence[Row]) -> str:
    """Return the outcomes as a Markdown table."""
    lines = [
        "| file | moment | bits | equal | typed error | other |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for kind, moment, counts in rows:
        errors = {
            name: count
            for name, count in counts.items()
            if name != EQUAL and " " not in name and name != DIFFERENT
        }
        other_count = counts.total() - counts[EQUAL] - sum(errors.values())
        error_text = ", ".join(f"{count} {name}" for name, count in sorted(errors.items())) or "0"
        lines.append(
            f"| {kind} | {moment} | {counts.total()} | {counts[EQUAL]} | {error_text} | "
            f"{other_count} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    with _scratch() as place:
        found_rows = matrix(place, int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    print(table(found_rows))
    raise SystemExit(1 if unexpected_rows(found_rows) else 0)
