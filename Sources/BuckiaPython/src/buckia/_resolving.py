"""Resolvers: Python functions that decide about conflicts while diffs are applied."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

from . import _abi
from ._abi import library
from ._arguments import text
from ._calls import Call, decoded
from ._errors import MisuseError
from ._values import Row, Value, row_from_c, to_c

_KINDS = {number: word for word, number in _abi.CONFLICT_KINDS.items()}
_OPERATIONS = {number: word for word, number in _abi.OPERATIONS.items()}
_ANSWERS = {"local": _abi.ANSWER_LOCAL, "incoming": _abi.ANSWER_INCOMING, "abort": _abi.ANSWER_ABORT}


@dataclass(frozen=True)
class Conflict:
    """One conflict, with three versions of the row.

    A version is a dict of values by column, which may be kept. It is None where there is no such row.
    """

    table: str
    """The table; empty for the `foreign-key` that is asked about once for a whole file."""
    kind: str
    """Why the change does not fit: `data`, `not-found`, `conflict`, `constraint` or `foreign-key`."""
    operation: Optional[str]
    """`insert`, `update` or `delete`; None where it is about a whole file."""
    columns: list[str]
    """The names of the columns."""
    key_columns: list[str]
    """Those of them that the row is known by."""
    base: Optional[Row]
    """The row that its author had, as far as the change tells; None for an INSERT."""
    local: Optional[Row]
    """The row here; None where there is none."""
    incoming: Optional[Row]
    """The row as its author wants it, without the columns that the change leaves alone; None for a DELETE."""
    reason: Optional[str]
    """Why the row is refused; None where `kind` says all."""
    violations: int
    """How many rows the file has left with references that lead nowhere, where it is about a whole file; else 0."""

    @property
    def key(self) -> Row:
        """The values of the key."""
        found: Row = {}
        for column in self.key_columns:
            for version in (self.base, self.local, self.incoming):
                if version is not None and column in version:
                    found[column] = version[column]
                    break
        return found

    @classmethod
    def _of(cls, conflict: Any) -> Conflict:
        count = conflict.column_count
        columns = [decoded(conflict.columns[place]) for place in range(count)]
        return cls(
            table=decoded(conflict.table),
            kind=_KINDS[conflict.kind],
            operation=_OPERATIONS.get(conflict.operation),
            columns=columns,
            key_columns=[column for place, column in enumerate(columns) if conflict.is_key[place]],
            base=row_from_c(columns, conflict.base),
            local=row_from_c(columns, conflict.local),
            incoming=row_from_c(columns, conflict.incoming),
            reason=None if conflict.reason is None else decoded(conflict.reason),
            violations=conflict.violations,
        )


Answer = Union[None, str, Mapping[str, Value]]
"""What a resolver answers.

`"local"` keeps the row as it is here, `"incoming"` writes it as its author wants it, `"abort"` refuses the whole diff,
and None leaves it to the policies. A mapping gives columns their values: those that it does not name keep the local
value, or get the incoming one where there is no local row.
"""

Resolver = Callable[[Conflict], Answer]
"""Is asked about each conflict, before the policies. What it raises stops the call and comes out of it unchanged.

It runs inside the transaction and must not write to the database. It may be asked twice about the same conflict, where
files are applied again because one of them failed.
"""


def callback(call: Call, resolver: Resolver) -> Any:
    """A resolver as C calls it."""

    def resolve(_context: object, conflict: Any, row: Any) -> int:
        answer = resolver(Conflict._of(conflict.contents))
        if answer is None:
            return _abi.ANSWER_DEFAULT
        if isinstance(answer, str):
            if answer not in _ANSWERS:
                raise ValueError(
                    f"a resolver has answered {answer!r}, which is none of {', '.join(map(repr, _ANSWERS))}"
                )
            return _ANSWERS[answer]
        if not isinstance(answer, Mapping):
            raise TypeError(f"a resolver must answer with a word, a mapping or None, and not {type(answer).__name__}")
        for column, value in answer.items():
            converted, _kept = to_c(value, column)
            if library.buckia_row_set(row, text(column, "a column"), byref(converted)) != _abi.OK:
                raise MisuseError("misuse", f"the column {column!r} cannot be set")
        return _abi.ANSWER_ROW

    return _abi.ConflictCallback(call.guarded(resolve, _abi.ANSWER_FAIL))
