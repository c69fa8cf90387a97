"""What is given to a call, as C takes it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping
from ctypes import c_char_p
from typing import Any, Optional, Union

from . import _abi
from ._values import PathLike, Value, to_c

Names = Optional["ctypes.Array[c_char_p]"]


def text(value: Optional[str], what: str) -> Optional[bytes]:
    """Text as C takes it.

    Raises:
        ValueError: There is a NUL in it, which would end it in C.
    """
    if value is None:
        return None
    if "\0" in value:
        raise ValueError(f"{what} has an embedded null character")
    return value.encode()


def path(value: Optional[PathLike], what: str = "the path") -> Optional[bytes]:
    """A path as C takes it."""
    return None if value is None else text(os.fspath(value), what)


def names(values: Iterable[Optional[bytes]]) -> tuple[Names, int]:
    """Several texts as C takes them, and their number."""
    encoded = list(values)
    return ((c_char_p * len(encoded))(*encoded) if encoded else None), len(encoded)


def paths(values: Iterable[PathLike]) -> tuple[Names, int]:
    """Several paths as C takes them, and their number."""
    if isinstance(values, (str, os.PathLike)):
        raise TypeError("one path is given, where several are expected: put it into a list")
    return names(path(value) for value in values)


def texts(values: Iterable[str], what: str) -> tuple[Names, int]:
    """Several texts as C takes them, and their number."""
    if isinstance(values, str):
        raise TypeError(f"{what} is one text, where several are expected: put it into a list")
    return names(text(value, what) for value in values)


def choice(value: str, choices: Mapping[str, int], what: str) -> int:
    """The number that a word stands for.

    Raises:
        ValueError: There is no such word.
    """
    try:
        return choices[value]
    except KeyError:
        raise ValueError(f"{what} is {value!r}, and must be one of {', '.join(map(repr, choices))}") from None


def trust_mode(trust: Optional[str]) -> int:
    """The number of a trust mode; that of "as it is" for None."""
    return 0 if trust is None else choice(trust, _abi.TRUST_MODES, "trust")


def number(value: int, what: str) -> int:
    """An integer as C takes it, of which ctypes would only pass the last 64 bits.

    Raises:
        OverflowError: It does not fit 64 bits.
    """
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"{what} does not fit 64 bits")
    return value


def limit(newest: Optional[int]) -> int:
    """How many items are wanted; a negative number for all.

    Raises:
        ValueError: It is negative itself.
        OverflowError: It does not fit 64 bits.
    """
    if newest is not None and newest < 0:
        raise ValueError("newest must not be negative")
    return -1 if newest is None else number(newest, "newest")


def conflict_filter(table: Optional[str], diff: Optional[str], kind: Optional[str], open: bool) -> _abi.ConflictFilter:
    """Which recorded conflicts are wanted."""
    return _abi.ConflictFilter(
        table=text(table, "the table"),
        diff=text(diff, "the diff"),
        kind=0 if kind is None else choice(kind, _abi.CONFLICT_KINDS, "kind"),
        open=open,
    )


def table_policy(subject: Union[str, tuple[str, str]], policy: str) -> _abi.TablePolicy:
    """The policy of a table, or of one of its columns."""
    table, column = (subject, None) if isinstance(subject, str) else subject
    return _abi.TablePolicy(
        text(table, "the table"), text(column, "the column"), choice(policy, _abi.POLICIES, f"the policy of {table}")
    )


def table_columns(columns: Optional[Mapping[str, Iterable[str]]], what: str) -> tuple[Any, int]:
    """Columns by table as C takes them, and the number of tables."""
    tables = [
        _abi.TableColumns(text(table, f"a table of {what}"), *texts(names, f"the columns of {table}"))
        for table, names in (columns or {}).items()
    ]
    return ((_abi.TableColumns * len(tables))(*tables) if tables else None), len(tables)


def cells(values: Mapping[str, Value]) -> tuple[list[_abi.Cell], list[object]]:
    """Values for C, and what must be kept as long as they are used."""
    converted = [(column, *to_c(value, column)) for column, value in values.items()]
    return [_abi.Cell(text(column, "a column"), value) for column, value, _ in converted], [
        kept for *_, kept in converted
    ]
