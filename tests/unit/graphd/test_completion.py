"""Tests of the completion of statements: valid continuations, names of the schema, none in text."""

from __future__ import annotations

import re

import pytest

from asterism_model.schema import EdgeType, Feature, NodeType, Schema, WeightTable
from graphd.query.completion import SpaceNames, collect_names, complete
from graphd.query.lark_parser import MAX_LENGTH

SCHEMA = Schema(
    node_types=(
        NodeType(
            name="item",
            weighted=True,
            features=(Feature(name="price", dtype="float32"),),
            tables=(WeightTable(name="popular", expression="weight * price"),),
        ),
        NodeType(name="user"),
    ),
    edge_types=(
        EdgeType(src_type="user", relation="buys", dst_type="item"),
        EdgeType(src_type="user", relation="likes", dst_type="item"),
        EdgeType(src_type="user", relation="likes", dst_type="user"),
    ),
)
SPACES = {"shop": collect_names(SCHEMA), "my-papers": SpaceNames(node=("paper",))}


def texts(text: str, space: str = "shop", **options: str) -> list[str]:
    completions = complete(
        text,
        space=space,
        space_names=lambda: SPACES,
        names_of=lambda name: SPACES.get(name, SpaceNames()),
        parameters=("least", "many"),
        **options,
    )
    return [candidate.text for candidate in completions.candidates]


EDGE_TYPES = ["buys", "user:buys:item", "user:likes:item", "user:likes:user"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SAMPLE 5 ", ["EDGES", "NEGATIVES", "NEIGHBORS", "VERTICES"]),
        ("show spaces; sample 5 ver", ["vertices"]),
        ("SAMPLE 5 VERTICES ON ", ["item", "user"]),
        ("SAMPLE 5 VERTICES ON item, u", ["user"]),
        ("SAMPLE 5 EDGES ON b", ["buys"]),
        ("GO FROM 1 OVER buys, user:likes:", ["user:likes:item", "user:likes:user"]),
        ("GO FROM 1 ON user OVER buys EXCLUDE ON ", EDGE_TYPES),
        ("GO FROM 1 OVER buys EXCLUDE ON buys 1 -> 2 REVERSE ", EDGE_TYPES),
        ("SAMPLE 5 VERTICES ON item WHERE p", ["price"]),
        ("SAMPLE 5 VERTICES ON item YIELD id, P", ["price"]),
        ("SAMPLE 5 VERTICES ON item WEIGHT ", ["popular", "weight", "$least", "$many"]),
        ("SAMPLE $", ["$least", "$many"]),
        ("SAMPLE $m", ["$many"]),
        ("USE ", ["`my-papers`", "shop"]),
        ("SHOW SPACES; USE `m", ["`my-papers`"]),
        ("DROP SPACE s", ["shop"]),
        ("USE `my-papers`; SAMPLE 5 VERTICES ON ", ["paper"]),
        ("SUBMIT JOB ex", ["export-tables"]),
        ("GRANT ROLE ", ["admin", "builder", "reader", "writer"]),
        ("GRANT ROLE reader ON ", ["`my-papers`", "shop"]),
        ("REVOKE ROLE ON s", ["shop"]),
        ("SHOW ROLES IN m", ["`my-papers`"]),
        ("GRANT ROLE reader ON shop TO ", ["$least", "$many"]),
    ],
)
def test_only_valid_continuations_are_suggested(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        'FETCH PROP ON item "us',
        "SAMPLE 5 VERTICES # on us",
        "SAMPLE 5 VERTICES /* us",
        "SAMPLE SAMPLE u",
        "CREATE SPACE s",
        "SAMPLE 5 VERTICES ON item YIELD id AS p",
        "SHOW SPACES sho",
        "x" * (MAX_LENGTH + 1) + " ",
    ],
    ids=lambda text: text[:40],
)
def test_nothing_is_suggested_where_nothing_is_valid(text: str) -> None:
    assert texts(text) == []


def test_a_comment_that_has_ended_hides_nothing() -> None:
    assert texts('# it\'s "one"\nSAMPLE 5 VERTICES ON us') == ["user"]
    assert texts("SAMPLE 5 VERTICES ON us", space="") == []


STATEMENTS = """
USE shop; SHOW HOSTS STORAGE; SHOW CREATE SPACE shop; DESCRIBE EDGE user:likes:item
EXPLAIN SAMPLE 5 VERTICES ON item WHERE price > 3 AND NOT price IN (4, 5) WEIGHT popular SEED 1
SAMPLE 3 NEIGHBORS FROM 1, 2 ON user OVER buys THEN * REVERSELY UNIFORM YIELD id, price AS p
TOP 3 NEIGHBORS FROM 1 OVER buys EXCLUDE ON buys 1 -> 2 @ 3 REVERSE buys REVERSELY
GO 1 TO 2 STEPS FROM 1 ON user OVER buys WHERE price IS NOT NULL ORDER BY price DESC LIMIT 5
FETCH PROP ON item 1, 2 YIELD DISTINCT price
PROFILE SAMPLE LAYERS [2, 3] FROM 1 ON user OVER buys THEN likes BY SQUARES
SUBMIT JOB build WITH (link = 'no'); STOP JOB 3; RECOVER JOB
DROP SPACE IF EXISTS shop; GRANT ROLE `admin` ON `shop` TO `a`; REVOKE ROLE ON `shop` FROM `a`
SHOW ROLES ON `shop`; SHOW ROLES IN `shop`; SHOW API KEYS
""".strip().split("\n")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_keyword_of_a_statement_is_suggested(statement: str) -> None:
    for word in re.finditer(r"\b[A-Z]{2,}\b", statement):
        assert word[0] in texts(statement[: word.start()]), statement[: word.end()]
        assert word[0] in texts(statement[: word.start() + 1])


def test_steps_of_euler_are_completed() -> None:
    assert texts("sampleN(-1, 4).sample", language="euler") == ["sampleLNB", "sampleNB"]
    assert texts("sampleN($l", language="euler") == ["$least"]
