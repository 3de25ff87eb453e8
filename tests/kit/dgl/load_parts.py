"""Load every partition by DGL's `load_partition` and save NumPy arrays.

Usage: load_parts.py CONFIG OUT_FOLDER.

With DGL_DIST_DEBUG=1 DGL itself asserts that each inner node and edge maps to the part.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from dgl_shim import dgl


def main(config: str, out: str) -> None:
    for part in range(json.loads(Path(config).read_text())["num_parts"]):
        graph, node_feats, edge_feats, book, name, ntypes, etypes = dgl.distributed.load_partition(
            config, part
        )
        src, dst, eid = graph.edges(form="all", order="eid")
        assert (eid.numpy() == np.arange(graph.num_edges())).all()
        kind, typewise = book.map_to_per_ntype(graph.ndata["_ID"])
        edge_kind, edge_typewise = book.map_to_per_etype(graph.edata["_ID"])
        arrays = {
            "src": src,
            "dst": dst,
            "node_type": kind,
            "node_typewise": typewise,
            "node_owner": book.nid2partid(graph.ndata["_ID"]),
            "edge_type": edge_kind,
            "edge_typewise": edge_typewise,
            "edge_owner": book.eid2partid(graph.edata["_ID"]),
        }
        arrays |= {f"ndata/{key}": value for key, value in graph.ndata.items()}
        arrays |= {f"edata/{key}": value for key, value in graph.edata.items()}
        # A member's path in a .npz cannot have the separator of feature names.
        arrays |= {f"nfeat/{key}".replace("/", "|"): value for key, value in node_feats.items()}
        arrays |= {f"efeat/{key}".replace("/", "|"): value for key, value in edge_feats.items()}
        np.savez(
            Path(out) / f"part{part}.npz", **{key: value.numpy() for key, value in arrays.items()}
        )
        summary = {
            "name": name,
            "ntypes": list(ntypes),
            "etypes": [":".join(etype) for etype in etypes],
        }
        (Path(out) / f"part{part}.json").write_text(json.dumps(summary))


if __name__ == "__main__":
    main(*sys.argv[1:])
