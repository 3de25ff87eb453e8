"""Arrays of edges in schema files, of shape (2, E) or (E, 2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from asterism.formats.chunks import mismatch_error
from asterism.formats.npy_files import ArrayFile
from asterism_proto.errors import InvalidRequest

_ITEM = re.compile(r"(.+)\[([0-9]+)\]")
_SUBSCRIPT = re.compile(r"(.+)\[(:, *)?([0-9]+)(, *:)?\]")


def split_edge_arrays(
    arrays: Mapping[str, Sequence[ArrayFile]], columns: Sequence[str], src: str, dst: str
) -> dict[str, list[ArrayFile]]:
    """Return the arrays of an edge type, with the rows of arrays of shape (2, E) as columns.

    ``e[0, :]`` is row 0 of an array, ``e[:, 0]`` its column 0. ``e[0]`` and ``e[1]`` as sources and
    destinations are rows if the first axis has length 2, and columns if the second has.

    Parameters
    ----------
    arrays : mapping of str to sequence of ArrayFile
        Files of each array.
    columns : sequence of str
        All columns that are read.
    src, dst : str
        Columns of sources and destinations.

    Returns
    -------
    dict of str to list of ArrayFile
        Arrays of which the first axis is that of edges.

    Raises
    ------
    InvalidRequest
        An array of shape (2, 2) is used as ``e[0]`` and ``e[1]``, an array has no such row or
        column, or arrays of one name differ in memory order.
    """
    result = {name: list(files) for name, files in arrays.items()}
    items = _items_by_shape(arrays, src, dst)
    for column in dict.fromkeys(columns):
        match = _SUBSCRIPT.fullmatch(column)
        if match is None or column in arrays or match[1] not in arrays:
            continue
        name, index = match[1], int(match[3])
        is_row = bool(match[4]) or (name in items and not match[2])
        views = [_axis_view(file, index, column, is_row=is_row) for file in arrays[name]]
        if all(len(view.shape) == 1 for view in views):
            result[column] = views
            if is_row:
                result.pop(name, None)
        elif any(len(view.shape) == 1 for view in views):
            raise InvalidRequest(
                f"{views[0].label}: expected all arrays of {name!r} in the same memory order; save "
                "them with numpy.ascontiguousarray"
            )
        else:
            result[name] = views
    return result


def _items_by_shape(arrays: Mapping[str, Sequence[ArrayFile]], src: str, dst: str) -> set[str]:
    """Return the arrays of which ``[i]`` is row i: those of sources and destinations, if any."""
    matches = [_ITEM.fullmatch(column) for column in (src, dst)]
    names = {match[1] for match in matches if match is not None}
    indexes = {match[2] for match in matches if match is not None}
    if indexes != {"0", "1"} or len(names) != 1 or not names <= arrays.keys():
        return set()
    (name,) = names
    files = arrays[name]
    # An array of shape (2, 2) has the layout of the others.
    with_rows = {file.shape[:1] == (2,) for file in files if file.shape != (2, 2)}
    if not with_rows:
        raise InvalidRequest(
            f"{files[0].label}: an array of shape [2, 2] has an edge per row or per column: "
            f"expected '{name}[0, :]' and '{name}[1, :]' for [2, E], or '{name}[:, 0]' and "
            f"'{name}[:, 1]' for [E, 2]"
        )
    if len(with_rows) > 1:
        raise InvalidRequest(
            f"{files[0].label}: expected all arrays of {name!r} in one shape, [2, E] or [E, 2]"
        )
    return names if with_rows == {True} else set()


def _axis_view(file: ArrayFile, index: int, column: str, *, is_row: bool) -> ArrayFile:
    """Return a row or column of an array if its values are adjacent.

    Otherwise return the array with that axis as its second, in C order.
    """
    if len(file.shape) != 2 or index >= file.shape[0 if is_row else 1]:
        expected = f"[{index + 1} or more, E]" if is_row else f"[E, {index + 1} or more]"
        raise mismatch_error(file.label, expected, list(file.shape), f"as the shape, for {column}")
    edges, width = file.shape[::-1] if is_row else file.shape
    if is_row == file.fortran:
        return file.view((edges, width), 0)
    return file.view((edges,), index * edges)
