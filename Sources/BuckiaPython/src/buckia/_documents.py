"""Reading the documents that the command `buckia` prints with `--json`, and what several of them have."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union

from ._values import Row, Value, from_json, row_from_json

T = TypeVar("T")


def read(kind: type[T], document: Mapping[str, Any]) -> T:
    """Makes a report from JSON: each field from the member of its name, as the field's type says.

    A field `is_encrypted` is the member `encrypted`; some name their member themselves. Other members are left out.
    """
    values = {}
    for name, member, type_ in _members(kind):  # type: ignore[arg-type]
        if member in document:
            values[name] = _value(type_, document[member])
    return kind(**values)


@cache
def _members(kind: Any) -> list[tuple[str, str, Any]]:
    """The fields of a report, their members in JSON, and their types."""
    types = typing.get_type_hints(kind)
    return [
        (field.name, field.metadata.get("name") or _camel_case(field.name), types[field.name]) for field in fields(kind)
    ]


def _camel_case(name: str) -> str:
    first, *others = (name[3:] if name.startswith("is_") else name).split("_")
    return first + "".join(word.capitalize() for word in others)


def _value(type_: Any, value: Any) -> Any:
    if type_ == Value:
        return from_json(value)
    if type_ == Row:
        return row_from_json(value)
    arguments = typing.get_args(type_)
    if typing.get_origin(type_) is Union:
        return None if value is None else _value(arguments[0], value)
    if typing.get_origin(type_) is list:
        return [_value(arguments[0], item) for item in value]
    if isinstance(type_, type) and is_dataclass(type_):
        return read(type_, value)
    if type_ is Path:
        return Path(value)
    return _moment(value) if type_ is datetime else value


def _moment(text: str) -> datetime:
    # RFC 3339 says Z, which Python reads from 3.11 on.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@dataclass(frozen=True)
class WarningCode:
    """A warning for programs; the warnings say the same for people."""

    code: str
    """A word that stays the same between versions."""
    arguments: list[str]
    """What it is about."""


@dataclass(frozen=True)
class SkippedItem:
    """Something that does not travel, or not in the way that was wanted."""

    name: str
    """The table or another object."""
    code: str
    """A word that stays the same between versions."""
    reason: str
    """Why, for people."""
