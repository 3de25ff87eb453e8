"""Reading a finished export again, to the last byte: does it hold what was read for it, each node and edge once, where DGL looks for it?

Nothing is taken from the writer but the formats: what is compared are the files among each other, and with the sums that the
manifest has of the rows as they came from the graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asterism.export.dgl_files import read_tensors
from asterism.export.gathered import Gathered, gathered, list_again
from asterism.export.held import Held, HeldPart
from asterism.export.names import wrong_names
from asterism.export.seal import MANIFEST
from asterism.export.source import Array, Ids, Progress
from asterism.export.sums import Sums, ids_sum, rows_sum
from asterism_proto.errors import AsterismError

_STEP = 1 << 18
_MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found in an export."""

    out: str
    version: int
    parts: int
    """Of the export."""
    verified: tuple[int, ...]
    """The parts that were there: all, or those of a machine."""
    nodes: int
    edges: int
    """Of all parts."""
    files: int
    bytes: int
    problems: tuple[str, ...]
    """What is wrong, and where; empty: nothing."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(out: str | Path, *, ip_config: str | Path | None = None, progress: Progress | None = None) -> Verified:
    """Read an export for DGL again and prove that it is whole.

    Every file has the size and sha256 of the manifest, and there is no other one. Each node and edge is owned once, by the part that
    the maps say; each part's ids, flags, owners and types are right; every edge joins, by stored ids, what it joined in the graph;
    each part holds the edges and nodes of others that it must (HALO), and no more; ids map to stored ids and back; every
    feature has one row for each of them, with the bytes that were read. Where ids are strings, each is the id of its string.

    Of an export that was dispatched one machine's folder is verified by itself, in all that concerns its parts alone; and all of
    them together as wholly as before they were.

    Parameters
    ----------
    out : str or Path
        Where the export is; what is at an address is brought to a temporary folder first. With ``{part}`` or ``{host}`` in it: where
        `dispatch` brought it.
    ip_config : str or Path, optional
        DGL's file of machines, for ``{host}``.
    progress : callable, optional
        Called with (phase, done, total or None).

    Raises
    ------
    InvalidRequest, NotFound
        An address does not fit; there is no export, at one of them: no ``manifest.json``.
    """
    with gathered(out, ip_config) as there:
        check = _Check(there, progress)
        check.everything()
    manifest = there.manifest
    return Verified(
        out=there.shown,
        version=manifest["version"],
        parts=manifest["parts"],
        verified=there.parts,
        nodes=sum(map(sum, manifest["nodes"].values())),
        edges=sum(map(sum, manifest["edges"].values())),
        files=len(manifest["files"]),
        bytes=sum(told["bytes"] for told in manifest["files"].values()),
        problems=tuple(check.problems[:_MOST_PROBLEMS]),
    )


class _Check:
    """One verification under way."""

    def __init__(self, there: Gathered, progress: Progress | None) -> None:
        self.folder, self.manifest = there.folder, there.manifest
        self.problems = list(there.damaged)
        self._there = there
        self._progress = progress
        self._sums = {label: Sums() for label in there.manifest["sums"]}

    def everything(self) -> None:
        """All that there is to check."""
        self._files()
        held = self._try("the configuration", lambda: Held.of(self.folder, self.manifest, lists=self._there.lists))
        if held is None:
            return
        self.problems += held.problems
        if self._there.whole and self._there.lists != self.folder:
            self._try("the original ids", lambda: list_again(held))
        for done, part in enumerate(self._there.parts, 1):
            self._try(f"part {part}", lambda part=part: self._part(held, held.part(part)))
            self._tell("parts", done, len(self._there.parts))
        if self._there.whole:
            self._halos(held)
            self._totals()

    def _tell(self, phase: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(phase, done, total)

    def _try(self, where: str, look: Any) -> Any:
        try:
            return look()
        except (AsterismError, OSError, KeyError, ValueError, IndexError, TypeError) as error:
            text = error.message if isinstance(error, AsterismError) else f"{type(error).__name__}: {error}"
            self.problems.append(f"{where} can not be read: {text}")
            return None

    def _files(self) -> None:
        files: Mapping[str, Any] = self.manifest["files"]
        there = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()} - {MANIFEST}
        self.problems += [f"{path}: missing" for path in sorted(set(files) - there)]
        self.problems += [f"{path}: not a file of this export" for path in sorted(there - set(files))]
        done, total = 0, sum(told["bytes"] for told in files.values())
        for path in sorted(set(files) & there):
            with open(self.folder / path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = (self.folder / path).stat().st_size
            if (size, digest) != (files[path]["bytes"], files[path]["sha256"]):
                self.problems.append(
                    f"{path}: {size} bytes of sha256 {digest[:12]}..; {files[path]['bytes']} of {files[path]['sha256'][:12]}.. were written"
                )
            done += size
            self._tell("bytes", done, total)

    # -- one part -------------------------------------------------------------------------------------------------

    def _part(self, held: Held, part: HeldPart) -> None:
        self.problems += part.problems()
        where = f"part{part.number}"
        nids, eids = (read_tensors(self.folder / where / f"orig_{letter}ids.dgl") for letter in "ne")
        for original, ranges, labels, listed in ((nids, held.nodes, held.ntypes, held.node_ids), (eids, held.edges, held.etypes, held.edge_ids)):
            counts, before = ranges.counts[part.number], ranges.counts[: part.number].sum(axis=0)
            for place, label in enumerate(labels):
                ids = original[label]
                if ids.shape != (counts[place],):
                    self.problems.append(f"{where}: {len(ids)} original ids of {label}, of which the part owns {counts[place]}")
                elif self._there.whole and not np.array_equal(ids, listed(label)[before[place] : before[place] + len(ids)]):
                    self.problems.append(f"{where}: the original ids of {label} are not those of the list of all parts")
        if "names" in self.manifest:
            self.problems += wrong_names(self.folder / where, nids, self.manifest["names"]["salt"])
        for label in held.ntypes:
            self._add(label, "", nids[label])
        self._features(f"{where}/node_feat.dgl", nids, held.ntypes)
        self._features(f"{where}/edge_feat.dgl", eids, held.etypes)
        for place, label in enumerate(held.etypes):
            self._ends(held, part, place, label, eids[label])

    def _ends(self, held: Held, part: HeldPart, place: int, label: str, eids: Ids) -> None:
        """What each owned edge of a type joins, by stored ids."""
        for at, src, dst in part.owned(place):
            ends = []
            for what, gids, ntype in (("source", src, held.src_of(label)), ("destination", dst, held.dst_of(label))):
                wrong = np.flatnonzero(held.nodes.types(gids) != ntype)
                if wrong.size:
                    edge = f"edge {eids[at + wrong[0]]} of {label}"
                    self.problems.append(f"part{part.number}: the {what} of {edge} is no node of type {held.ntypes[ntype]}")
                    return
                if self._there.whole:
                    ends.append(held.stored(ntype, gids))
            if self._there.whole:
                self._sums[label].add("", ids_sum(np.asarray(eids[at : at + len(src)]), *ends))

    def _add(self, label: str, name: str, ids: Ids, values: Array | None = None) -> None:
        for at in range(0, len(ids), _STEP):
            some = np.asarray(ids[at : at + _STEP])
            self._sums[label].add(name, ids_sum(some) if values is None else rows_sum(some, values[at : at + _STEP]))

    def _features(self, path: str, original: Mapping[str, Ids], labels: tuple[str, ...]) -> None:
        found = read_tensors(self.folder / path)
        columns: Mapping[str, Mapping[str, Any]] = self.manifest["columns"]
        wanted = {f"{label}/{name}": (label, name, told) for label in labels for name, told in columns[label].items()}
        trainers = {f"{label}/trainer_id" for label in labels if self.manifest.get("num_trainers_per_machine", 1) > 1}
        if set(found) != set(wanted) | trainers:
            self.problems.append(f"{path}: features {sorted(found)}; expected {sorted(set(wanted) | trainers)}")
        for key in set(found) & set(wanted):
            label, name, (dtype, *shape) = wanted[key]
            values, ids = found[key], original[label]
            if values.dtype.name != dtype or list(values.shape) != [len(ids), *shape]:
                self.problems.append(f"{path}: {key} is {values.dtype}{list(values.shape)}; expected {dtype}{[len(ids), *shape]}")
            else:
                self._add(label, name, ids, values)

    # -- all parts together ---------------------------------------------------------------------------------------

    def _halos(self, held: Held) -> None:
        """Whether each part holds what it must of other parts."""
        needed = self._try("the edges between parts", held.needed)
        for part in range(held.parts if needed is not None else 0):
            found = self._try(f"part {part}", lambda part=part: held.part(part).beside())
            if found is not None and found != needed[part]:
                self.problems.append(
                    f"part{part}: HALO: it holds {found[0]} edges of other parts, {needed[part][0]} it must; they are not the same ones"
                )
            if found is not None and self.manifest["outer_edges"][part] != found[0]:
                self.problems.append(f"part{part}: it holds {found[0]} edges of other parts, the manifest says {self.manifest['outer_edges'][part]}")

    def _totals(self) -> None:
        """The sums of all rows against those that were read."""
        for label, sums in self._sums.items():
            found = sums.told()
            for name, wanted in self.manifest["sums"][label].items():
                if found.get(name, "0" * 16) != wanted:
                    what = f"rows of {name!r}" if name else "ids, each once, and what they join"
                    self.problems.append(f"{label}: the {what} are not those that were read from the graph")
