"""Descriptions of settings, read from the docstrings below them when a help text needs them.

Pydantic can read them as well (``use_attribute_docstrings``), but at every import: that takes 20 ms
for each class.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

from pydantic import BaseModel


def describe_settings(model: type[BaseModel]) -> None:
    """Set the description of each field of a model, in place.

    Parameters
    ----------
    model : type
        Class with a docstring below each field, in its source and in that of its bases.
    """
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and "__annotations__" in vars(base):
            for name, text in _docstrings(base).items():
                if name in model.model_fields:
                    model.model_fields[name].description = text


def _docstrings(cls: type) -> dict[str, str]:
    """Return the docstring below each attribute of a class, by the attribute's name."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[field.target.id] = inspect.cleandoc(text)
    return found
