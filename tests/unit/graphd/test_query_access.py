"""Tests of statements about API keys, over a client of a server of access control."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.kit.access_server import access_server
from tests.kit.waiting import HANG_S

import asterism
from graphd.query import access_statements
from graphd.query.ast import ShowStatement
from graphd.query.table import TableColumn


def cells(column: TableColumn) -> list[Any]:
    if not isinstance(column.values, tuple):
        return column.values.tolist()
    indptr, characters = column.values
    return [bytes(characters[start:end]).decode() for start, end in pairwise(indptr)]


def test_keys_are_listed_without_secrets() -> None:
    statement = ShowStatement(subject="API KEYS")
    with access_server() as server, asterism.connect(server.address, timeout_s=HANG_S) as client:
        kept = client.create_api_key("alice", expires_s=60, description="ci")
        revoked = client.revoke_api_key(client.create_api_key("bob").key_id)
        table = access_statements.show_access(statement, client).table
    assert {column.name: cells(column) for column in table.columns} == {
        "key_id": [kept.key_id, revoked.key_id],
        "principal": ["alice", "bob"],
        "description": ["ci", ""],
        "created_ms": [kept.created_ms, revoked.created_ms],
        "expires_ms": [kept.expires_ms, 0],
        "revoked_ms": [0, revoked.revoked_ms],
    }
