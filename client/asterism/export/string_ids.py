"""String ids of an export's nodes, written next to the numeric ids and read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_tensor_files import ArrayStream, read_tensors
from asterism.export.export_schema import TypePlan
from asterism.export.graph_source import Ids, NodeFeatureSource
from asterism.export.run_state import ExportRun, spool_column
from asterism.export.scratch_files import Spool
from asterism.local_paths import local_path
from asterism_graphkit.arrays.siphash import compute_string_ids
from asterism_model import string_ids as contract
from asterism_proto.errors import Corrupt, Internal, NotFound

STRING_IDS_FILE = "orig_names.dgl"
_STEP = 1 << 16
"""Number of nodes for which string ids are read or checked at once."""


def write_names(run: ExportRun, part: int, ids: Mapping[TypePlan, Sequence[Spool]]) -> None:
    """Write the string ids of a partition's nodes, in the order of their numeric ids.

    The tensors are ``<ntype>/indptr`` and ``<ntype>/utf8``.
    """
    tensors: dict[str, ArrayStream] = {}
    spools_to_remove = []
    for kind, spools in ids.items():
        indptr, text = _collect_names(run, kind, spools)
        tensors |= {
            f"{kind.label}/indptr": spool_column(indptr),
            f"{kind.label}/utf8": spool_column(text),
        }
        spools_to_remove += [indptr, text]
    run.write_tensors(part, STRING_IDS_FILE, tensors)
    for spool in spools_to_remove:
        spool.remove()


def write_name_list(run: ExportRun, kind: TypePlan, ids: Sequence[Spool]) -> None:
    """Write the string ids of a type's nodes, in the order of their numeric ids.

    The files are ``node_names/<label>.indptr.npy`` and ``node_names/<label>.utf8.npy``.
    """
    for suffix, spool in zip(("indptr", "utf8"), _collect_names(run, kind, ids), strict=True):
        with run.open_output(f"node_names/{kind.label}.{suffix}.npy") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": spool.dtype.str, "fortran_order": False, "shape": (spool.rows,)}
            )
            for piece in spool.pieces():
                file.write(piece.view(np.uint8).data)
        spool.remove()


def _collect_names(run: ExportRun, kind: TypePlan, ids: Sequence[Spool]) -> tuple[Spool, Spool]:
    """Read string ids into two scratch files, the offsets and the UTF-8 bytes."""
    if not isinstance(run.graph, NodeFeatureSource):
        raise Internal(f"a {type(run.graph).__name__} cannot be asked what its nodes are called")
    offsets = Spool(
        path=run.scratch_path(), dtype=np.dtype(np.int64), piece_bytes=run.spool("").piece_bytes
    )
    text = Spool(
        path=run.scratch_path(), dtype=np.dtype(np.uint8), piece_bytes=run.spool("").piece_bytes
    )
    text.path.touch()
    offsets.append(np.zeros(1, np.int64))
    total = 0
    for batch in _pieces(ids):
        names = run.graph.node_features(
            batch, [contract.ID_COLUMN], kind.name, version=run.version
        )[contract.ID_COLUMN]
        assert isinstance(names, tuple)
        indptr, values = names
        if bool((np.diff(indptr) == 0).any()):
            unnamed_id = batch[int(np.argmin(np.diff(indptr)))]
            raise Corrupt(
                f"node {unnamed_id} of type {kind.name} has no name in version "
                f"{run.version}; build the space again"
            )
        offsets.append(indptr[1:] + total)
        text.append(values)
        total += len(values)
    return offsets, text


def _pieces(ids: Sequence[Spool]) -> Iterator[Ids]:
    for spool in ids:
        for piece in spool.pieces():
            for start in range(0, len(piece), _STEP):
                yield piece[start : start + _STEP]


def read_names(folder: str | Path, part: int, ntype: str) -> NDArray[np.str_]:
    """Return the string ids of the nodes of one partition of a finished export.

    Parameters
    ----------
    folder : str or Path
        Folder of the export.
    part : int
        Number of the partition.
    ntype : str
        Node type, as named in the export.

    Returns
    -------
    ndarray of str, shape (n,)
        String ids in the order of the partition's nodes of the type.

    Raises
    ------
    NotFound
        There is no such partition or type, or the space has no string ids.

    Examples
    --------
    >>> names = export.read_names("partitions", 0, "airport")  # doctest: +SKIP
    >>> names[orig_nids == 5405137366318178033]  # doctest: +SKIP
    array(['SFO'], dtype='<U3')
    """
    path = local_path("folder", folder) / f"part{part}" / STRING_IDS_FILE
    if not path.is_file():
        raise NotFound(
            f"{path}: no such file; the part does not exist, or nodes have no names in the space"
        )
    tensors = read_tensors(path)
    if f"{ntype}/indptr" not in tensors:
        raise NotFound(
            f"{path}: no node type {ntype!r}; there are "
            f"{', '.join(key[:-7] for key in tensors if key.endswith('/indptr'))}"
        )
    return contract.decode_strings(
        (np.asarray(tensors[f"{ntype}/indptr"]), np.asarray(tensors[f"{ntype}/utf8"]))
    )


def name_problems(folder: Path, ids: Mapping[str, Ids], salt: int) -> list[str]:
    """Return the errors in the string ids of a partition.

    Each numeric id must be the hash of its string id.
    """
    tensors, problems = read_tensors(folder / STRING_IDS_FILE), []
    if set(tensors) != {f"{label}/{suffix}" for label in ids for suffix in ("indptr", "utf8")}:
        return [
            (
                f"{folder.name}/{STRING_IDS_FILE}: {sorted(tensors)}; expected indptr and utf8 "
                f"of {', '.join(ids)}"
            )
        ]
    for label, expected in ids.items():
        indptr, text = tensors[f"{label}/indptr"], tensors[f"{label}/utf8"]
        if len(indptr) != len(expected) + 1 or indptr[0] != 0 or indptr[-1] != len(text):
            problems.append(
                f"{folder.name}/{STRING_IDS_FILE}: {len(indptr) - 1} names of {label}, of "
                f"which the part owns {len(expected)}"
            )
            continue
        for start in range(0, len(expected), _STEP):
            offsets = np.asarray(indptr[start : start + _STEP + 1])
            batch = np.asarray(expected[start : start + _STEP])
            mismatched = np.flatnonzero(
                compute_string_ids(
                    offsets - offsets[0], np.asarray(text[offsets[0] : offsets[-1]]), salt
                )
                != batch
            )
            if mismatched.size:
                problems.append(
                    f"{folder.name}/{STRING_IDS_FILE}: the name of node "
                    f"{batch[mismatched[0]]} of {label} is not the one that its id is of"
                )
                break
    return problems
