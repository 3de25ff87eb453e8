"""What nodes are called, where that is a string: beside the ids of each part, and read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_files import Column, read_tensors
from asterism.export.plan import Kind
from asterism.export.run import Run, column
from asterism.export.source import Called, Ids
from asterism.export.spool import Spool
from asterism_proto import names as contract
from asterism_proto.errors import Corrupt, Internal, NotFound
from graphkit.names import ids_of

FILE = "orig_names.dgl"
_STEP = 1 << 16
"""Nodes whose names are asked for, or looked at, at once."""


def write_names(run: Run, part: int, ids: Mapping[Kind, Sequence[Spool]]) -> None:
    """Write what the nodes of a part are called, in the order of their ids: ``<ntype>/indptr`` and ``<ntype>/utf8``."""
    tensors: dict[str, Column] = {}
    made = []
    for kind, spools in ids.items():
        ends, text = _collected(run, kind, spools)
        tensors |= {f"{kind.label}/indptr": column(ends), f"{kind.label}/utf8": column(text)}
        made += [ends, text]
    run.write(part, FILE, tensors)
    for spool in made:
        spool.drop()


def list_names(run: Run, kind: Kind, ids: Sequence[Spool]) -> None:
    """Write what the nodes of a type are called, in the order of their ids, as ``node_names/<label>.indptr.npy`` and ``.utf8.npy``."""
    for suffix, spool in zip(("indptr", "utf8"), _collected(run, kind, ids), strict=True):
        with run.writing(f"node_names/{kind.label}.{suffix}.npy") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": spool.dtype.str, "fortran_order": False, "shape": (spool.rows,)})
            for piece in spool.pieces():
                file.write(piece.view(np.uint8).data)
        spool.drop()


def _collected(run: Run, kind: Kind, ids: Sequence[Spool]) -> tuple[Spool, Spool]:
    """Where each name begins, and their bytes."""
    if not isinstance(run.graph, Called):
        raise Internal(f"a {type(run.graph).__name__} can not be asked what its nodes are called")
    ends = Spool(path=run.making(), dtype=np.dtype(np.int64), piece_bytes=run.spool("").piece_bytes)
    text = Spool(path=run.making(), dtype=np.dtype(np.uint8), piece_bytes=run.spool("").piece_bytes)
    text.path.touch()
    ends.append(np.zeros(1, np.int64))
    total = 0
    for some in _pieces(ids):
        found = run.graph.node_features(some, [contract.COLUMN], kind.name, version=run.version)[contract.COLUMN]
        assert isinstance(found, tuple)
        indptr, values = found
        if bool((np.diff(indptr) == 0).any()):
            nameless = some[int(np.argmin(np.diff(indptr)))]
            raise Corrupt(f"node {nameless} of type {kind.name} has no name in version {run.version}; build the space again")
        ends.append(indptr[1:] + total)
        text.append(values)
        total += len(values)
    return ends, text


def _pieces(ids: Sequence[Spool]) -> Iterator[Ids]:
    for spool in ids:
        for piece in spool.pieces():
            for at in range(0, len(piece), _STEP):
                yield piece[at : at + _STEP]


def read_names(folder: str | Path, part: int, ntype: str) -> NDArray[np.str_]:
    """What the nodes of a part of a finished export are called: str[n], in the rows' order.

    Parameters
    ----------
    folder : str or Path
        Of the export.
    part : int
    ntype : str
        Of the nodes, as the export calls it.

    Raises
    ------
    NotFound
        Where there is no such part or type, or ids of the space were no strings.

    Examples
    --------
    >>> export.read_names("partitions", 0, "airport")[orig_nids == 5405137366318178033]  # doctest: +SKIP
    array(['SFO'], dtype='<U3')
    """
    path = Path(folder) / f"part{part}" / FILE
    if not path.is_file():
        raise NotFound(f"{path}: there is no such file; the part is not there, or nodes have no names in the space")
    found = read_tensors(path)
    if f"{ntype}/indptr" not in found:
        raise NotFound(f"{path}: no node type {ntype!r}; there are {', '.join(key[:-7] for key in found if key.endswith('/indptr'))}")
    return contract.decoded((np.asarray(found[f"{ntype}/indptr"]), np.asarray(found[f"{ntype}/utf8"])))


def wrong_names(folder: Path, ids: Mapping[str, Ids], salt: int) -> list[str]:
    """What is wrong with the names of a part: ids follow from them."""
    found, problems = read_tensors(folder / FILE), []
    if set(found) != {f"{label}/{half}" for label in ids for half in ("indptr", "utf8")}:
        return [f"{folder.name}/{FILE}: {sorted(found)}; expected indptr and utf8 of {', '.join(ids)}"]
    for label, expected in ids.items():
        indptr, text = found[f"{label}/indptr"], found[f"{label}/utf8"]
        if len(indptr) != len(expected) + 1 or indptr[0] != 0 or indptr[-1] != len(text):
            problems.append(f"{folder.name}/{FILE}: {len(indptr) - 1} names of {label}, of which the part owns {len(expected)}")
            continue
        for at in range(0, len(expected), _STEP):
            begins = np.asarray(indptr[at : at + _STEP + 1])
            some = np.asarray(expected[at : at + _STEP])
            wrong = np.flatnonzero(ids_of(begins - begins[0], np.asarray(text[begins[0] : begins[-1]]), salt) != some)
            if wrong.size:
                problems.append(f"{folder.name}/{FILE}: the name of node {some[wrong[0]]} of {label} is not the one that its id is of")
                break
    return problems
