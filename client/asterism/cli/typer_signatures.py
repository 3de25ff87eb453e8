"""Signatures of commands for typer: groups of options, and former names of options.

A parameter of a dataclass type is an option group: each field is an option, and the command
receives them as one record. A `FormerName` in the annotation of an option keeps an earlier spelling
working, hidden from help and completion.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

Command = Callable[..., None]


@dataclasses.dataclass(frozen=True, slots=True)
class FormerName:
    """An earlier spelling of an option, such as ``--at``, which is still accepted."""

    spelling: str
    value: Any = None
    """The value that the spelling selects, if it is a flag; None if it takes a value itself."""


def expand_option_groups(command: Command) -> Command:
    """Return `command` with the fields of its groups and the former names as separate options."""
    groups: dict[str, type] = {}
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            groups[parameter.name] = hint
            parameters += _group_parameters(hint)
        else:
            parameters.append(parameter.replace(annotation=hint))
    former_options = list(_former_options(parameters))
    parameters += [option.parameter for option in former_options]

    @functools.wraps(command)
    def call(**values: Any) -> None:
        for option in former_options:
            option.apply(values)
        for name, group in groups.items():
            fields = dataclasses.fields(group)
            values[name] = group(**{field.name: values.pop(field.name) for field in fields})
        command(**values)

    # typer reads both: the signature for the order and the defaults, the annotations for types.
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(call)["__signature__"] = inspect.Signature(parameters)
    return call


def _group_parameters(group: type) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        required = field.default is dataclasses.MISSING
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if required else field.default,
            annotation=hints[field.name],
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _FormerOption:
    """A hidden option, and the option that receives its value."""

    parameter: inspect.Parameter
    target: str
    flag_value: Any

    def apply(self, values: dict[str, Any]) -> None:
        """Move the value of the hidden option to its target, if it was given."""
        value = values.pop(self.parameter.name)
        if self.flag_value is None and value is not None:
            values[self.target] = value
        elif self.flag_value is not None and value:
            values[self.target] = self.flag_value


def _former_options(parameters: list[inspect.Parameter]) -> Iterator[_FormerOption]:
    for target in parameters:
        if get_origin(target.annotation) is not Annotated:
            continue
        value_type, *extras = get_args(target.annotation)
        for former in extras:
            if isinstance(former, FormerName):
                [option] = [extra for extra in extras if isinstance(extra, OptionInfo)]
                is_flag = former.value is not None
                parameter = inspect.Parameter(
                    f"former_{former.spelling.strip('-').replace('-', '_')}",
                    inspect.Parameter.KEYWORD_ONLY,
                    default=typer.Option(
                        False if is_flag else None,
                        former.spelling,
                        hidden=True,
                        min=option.min,
                        max=option.max,
                    ),
                    annotation=bool if is_flag else value_type,
                )
                yield _FormerOption(parameter, target.name, former.value)
