"""YAML files, read so that names stay as they are written.

YAML 1.1 takes ``on``, ``off``, ``yes`` and ``no`` for booleans, ``010`` and ``1:30`` for integers,
and the last of two equal keys for the only one. Here these words and numbers are text, keys always
are, and a repeated key is refused. Where only a boolean is possible, `asterism_model.validation`
accepts the words.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml

from asterism_proto.errors import InvalidRequest

_TAG = "tag:yaml.org,2002:"
_IMPLICIT = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
        r"|[0-9]+[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
)


class _InvalidValue(Exception):
    """Key that is no text or that a mapping has twice, or a number that is too large."""


class _Loader(yaml.SafeLoader):
    """Loader with text as keys and without the ambiguous words and numbers of YAML 1.1."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # as in the base class

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        pairs = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _InvalidValue(f"line {key.start_mark.line + 1}: expected text as a key")
            line = key.start_mark.line + 1
            if key.tag != f"{_TAG}merge":
                if key.value in lines:
                    raise _InvalidValue(
                        f"line {line}: {key.value!r} is there twice, first in line "
                        f"{lines[key.value]}; keep one of them"
                    )
                lines[key.value] = line
                key = yaml.ScalarNode(f"{_TAG}str", key.value, key.start_mark, key.end_mark)
            pairs.append((key, value))
        node.value = pairs
        return node


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float:
    number = float(loader.construct_yaml_float(node))
    if math.isinf(number) and "inf" not in node.value.lower():
        raise _InvalidValue(
            f"line {node.start_mark.line + 1}: {node.value}: the number is too large"
        )
    return number


_Loader.add_constructor(f"{_TAG}float", _construct_float)
for _name, _pattern, _first in _IMPLICIT:
    _Loader.add_implicit_resolver(
        f"{_TAG}{_name}", re.compile(f"^(?:{_pattern})$"), ["" if c == "\0" else c for c in _first]
    )


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML document.

    Raises
    ------
    ValueError
        The text is no YAML, or a mapping has a key twice. The message names the line.
    """
    try:
        return yaml.load(text, _Loader)
    except _InvalidValue as error:
        raise ValueError(str(error)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        problem = " ".join(filter(None, (error.problem, error.context)))
        raise ValueError(f"{place}{problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("expected fewer levels of brackets") from error


def read_yaml(path: Path) -> tuple[str, Any]:
    """Return the text of a YAML file, without a byte order mark, and its value.

    Raises
    ------
    InvalidRequest
        The file cannot be read, is no YAML, or has a key twice.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        return text, parse_yaml(text)
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{path}: cannot be read ({error})") from error
