"""Import what the daemons and the command import, so that its bytecode is in the image."""

from __future__ import annotations

import importlib

import numba

MODULES = (
    "cryptography.x509",
    "fastapi",
    "fsspec",
    "fsspec.implementations.local",
    "google.protobuf.json_format",
    "grpc",
    "grpc_health.v1.health",
    "grpc_reflection.v1alpha.reflection",
    "jwt",
    "lark",
    "numpy",
    "prometheus_client",
    "prompt_toolkit",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.parquet",
    "pydantic_settings",
    "pymetis",
    "rich.console",
    "rich.markup",
    "rich.progress",
    "rich.table",
    "rocksdict",
    "s3fs",
    "typer",
    "uvicorn",
    "yaml",
)


@numba.njit
def _add(x: float) -> float:
    """Make Numba import its compiler."""
    return x + 1.0


for name in MODULES:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:  # an extra that the image does not have
        print(f"not installed: {error.name}")
_add(1.0)
