"""Shim that imports DGL 1.1 and 2.1 wheels with a current setuptools and torch.

Use `from dgl_shim import dgl`. `dgl.utils` imports `packaging` from inside setuptools, which
dropped it in version 71, and DGL 2 loads a GraphBolt library that is built for a few versions of
torch only. Partitions in DGL's own format need one name of GraphBolt. If torchdata, which
GraphBolt's Python depends on, is installed, all of GraphBolt is available, and only calls into the
library fail, except that which numbers the ends of links.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
import types
from pathlib import Path

import packaging.version

_LIBRARIES: list[object] = []
"""Definitions of functions, which last as long as they are referenced."""


def _provide_packaging() -> None:
    if importlib.util.find_spec("setuptools.extern") is not None:
        return
    extern = types.ModuleType("setuptools.extern")
    extern.__path__ = []
    extern.packaging = packaging
    sys.modules["setuptools.extern"] = extern
    sys.modules["setuptools.extern.packaging"] = packaging
    sys.modules["setuptools.extern.packaging.version"] = packaging.version


def _stub_graphbolt() -> None:
    torch = importlib.metadata.version("torch").split("+")[0]
    library = f"graphbolt/libgraphbolt_pytorch_{torch}.so"
    folder = Path(str(importlib.metadata.distribution("dgl").locate_file("dgl")))
    if not importlib.metadata.version("dgl").startswith("2.") or (folder / library).exists():
        return
    if importlib.util.find_spec("torchdata") is not None:
        _mark_as_loaded(library)
        return
    graphbolt = types.ModuleType("dgl.graphbolt")
    graphbolt.FusedCSCSamplingGraph = type(
        "FusedCSCSamplingGraph", (), {}
    )  # used in isinstance() only
    sys.modules["dgl.graphbolt"] = graphbolt


def _mark_as_loaded(library: str) -> None:
    """Mark a missing library as loaded."""
    from torch import classes

    exists, load = os.path.exists, classes.load_library
    os.path.exists = lambda path: str(path).endswith(library) or exists(path)
    classes.load_library = lambda path: None if path.endswith(library) else load(path)
    _provide_unique_and_compact()


def _provide_unique_and_compact() -> None:
    """Define the library's function that numbers the ends of the links of a batch."""
    import torch

    def unique_and_compact(
        src: torch.Tensor, dst: torch.Tensor, unique_dst: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if dst.numel() or unique_dst.numel():
            raise NotImplementedError("unique_and_compact: expected sources alone")
        unique, positions = torch.unique(src, return_inverse=True)
        return unique, positions, dst

    library = torch.library.Library("graphbolt", "DEF")
    library.define(
        "unique_and_compact(Tensor src, Tensor dst, Tensor unique_dst) -> (Tensor, Tensor, Tensor)"
    )
    library.impl("unique_and_compact", unique_and_compact, "CPU")
    _LIBRARIES.append(library)


_provide_packaging()
_stub_graphbolt()

import dgl  # noqa: E402  # only now can it be imported
import dgl.distributed  # noqa: E402, F401
