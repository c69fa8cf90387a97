"""Values of rows: the types that Python's `sqlite3` has for them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any, Literal, Optional, Union

from . import _abi

Value = Union[None, int, float, str, bytes]
"""A value of a row: NULL, INTEGER, REAL, TEXT or BLOB."""

Row = dict[str, Value]
"""A row, or what is known of it: its values by column."""

Policy = Literal["keep-local", "take-incoming", "abort", "latest"]
MergePolicy = Literal["keep-local", "take-incoming", "abort"]
"""What is done about a conflict."""

SchemaMode = Literal["additive", "exact", "hold", "adopt"]
"""What is done about tables and columns that are missing here."""

TrustMode = Literal["any", "known"]
"""Whose files are applied."""

CopyPolicy = Literal["ask", "same", "apart"]
"""What is done about the first diff of a copy."""

DiffState = Literal["applied", "already-applied", "waiting", "held", "quarantined", "rejected"]
"""What became of a file."""

ConflictKind = Literal["data", "not-found", "conflict", "constraint", "foreign-key"]
"""Why a change did not fit."""

ConflictOutcome = Literal["kept-local", "took-incoming", "merged", "resolved", "omitted", "reported"]
"""What became of a conflict."""

Method = Literal["auto", "pages", "rows", "session"]
"""How databases are compared."""

PathLike = Union[str, "os.PathLike[str]"]
"""A path."""


def from_json(value: Any) -> Value:
    """A value as JSON has it, where objects name the kinds that JSON lacks."""
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]
    if "blob" in value:
        return bytes.fromhex(value["blob"])
    return int(value["int"]) if "int" in value else float(value["real"])


def row_from_json(row: Optional[Mapping[str, Any]]) -> Optional[Row]:
    """A row as JSON has it."""
    return None if row is None else {column: from_json(value) for column, value in row.items()}


def from_c(value: _abi.Value) -> Value:
    """A value as C has it. A part of a long value is only that part."""
    kind = value.type
    if kind == _abi.INTEGER:
        return value.integer  # type: ignore[no-any-return]
    if kind == _abi.REAL:
        return value.real  # type: ignore[no-any-return]
    if kind == _abi.NULL:
        return None
    # Sound: C keeps the bytes while the value is there.
    content = ctypes.string_at(value.bytes, value.length) if value.length else b""
    return as_text(content) if kind == _abi.TEXT else content


def as_text(content: bytes) -> str:
    """The text of bytes from a database. What is not UTF-8 is kept, in the way that Python keeps it in file names."""
    return content.decode("utf-8", "surrogateescape")


def row_from_c(columns: list[str], values: Any) -> Optional[Row]:
    """The columns that have a value; None where there is no row."""
    if not values:
        return None
    row: Row = {}
    for place, column in enumerate(columns):
        value = values[place]
        if value.type != _abi.NONE:
            row[column] = from_c(value)
    return row


def to_c(value: object, column: str) -> tuple[_abi.Value, object]:
    """A value for C, and what must be kept as long as it is used.

    Raises:
        TypeError: SQLite has no such values.
        OverflowError: An integer does not fit 64 bits.
    """
    if value is None:
        return _abi.Value(type=_abi.NULL), None
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise OverflowError(f"the integer for column {column!r} does not fit SQLite's 64 bits")
        return _abi.Value(type=_abi.INTEGER, integer=value), None
    if isinstance(value, float):
        return _abi.Value(type=_abi.REAL, real=value), None
    if isinstance(value, str):
        kind, content = _abi.TEXT, value.encode("utf-8")
    elif isinstance(value, (bytes, bytearray, memoryview)):
        kind, content = _abi.BLOB, bytes(value)
    else:
        raise TypeError(f"column {column!r} cannot have a value of the type {type(value).__name__}")
    kept = ctypes.c_char_p(content)
    return (
        _abi.Value(
            type=kind,
            bytes=ctypes.cast(kept, ctypes.c_void_p).value,
            length=len(content),
            whole_length=len(content),
        ),
        kept,
    )
