"""Conflicts: as a resolver sees them, as the database keeps them, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional

from ._values import ConflictKind, ConflictOutcome, Row, Value


@dataclass(frozen=True)
class MissingParent:
    """A row that another one refers to, and that is not there."""

    table: str
    """Its table."""
    key: Row
    """The columns that are referred to, and their values."""
    conflict: Optional[int]
    """The number of the conflict that has left the row out, where it came in the same file."""


@dataclass(frozen=True)
class Resolution:
    """How a recorded conflict was resolved."""

    id: int
    """Its number."""
    answer: str
    """`local`, `incoming`, `values`, `deletion`, `both`, `same` or `equal`."""
    decided_by: str = field(metadata={"name": "by"})
    """Who has decided."""
    decided_at: datetime = field(metadata={"name": "at"})
    """When."""
    before: Optional[Row]
    """The row before; None where there was none."""
    after: Optional[Row]
    """The row afterwards; None where there is none."""


@dataclass(frozen=True)
class ConflictRecord:
    """A conflict as the database keeps it, with all versions of the row."""

    id: int
    """Its number in this database."""
    diff: str
    """The diff file's id, or the digest of a raw changeset."""
    sender: str
    """Its sender, for people."""
    sender_key: Optional[str]
    """The verified key of the sender in hex; None where no signature says whose it is."""
    label: Optional[str]
    """What a person calls the row, such as its title; None where no column says it."""
    table: str
    """The table."""
    key: Row
    """The row's key."""
    kind: ConflictKind
    """`data`, `not-found`, `conflict`, `constraint` or `foreign-key`: why the change did not fit."""
    outcome: ConflictOutcome
    """`kept-local`, `took-incoming`, `merged`, `resolved`, `omitted` or `reported`: what became of it."""
    base: Optional[Row]
    """The row before the change of its sender."""
    local: Optional[Row]
    """The row as it was here."""
    incoming: Optional[Row]
    """The row as its author wants it; the columns that the change leaves alone are not in it."""
    reason: Optional[str]
    """SQLite's or Buckia's words, where there are any."""
    constraint: Optional[dict[str, Any]]
    """The constraint that refuses the row, as `--json` has it."""
    others: list[Row]
    """The keys of the local rows that have a UNIQUE value which the incoming row was to get."""
    parent: Optional[MissingParent]
    """The row that this one refers to and that is not there."""
    status: str
    """`open` where it was not decided by itself, else `resolved`."""
    rule: Optional[int]
    """The number of the rule that has decided."""
    resolution: Optional[Resolution]
    """How it was resolved since, last."""


@dataclass(frozen=True)
class Difference:
    """A column in which a row is not as it was last known."""

    column: str
    """The column."""
    known: Value
    """Its value when the row was last known."""
    present: Value
    """Its value now."""


@dataclass(frozen=True)
class ResolvedConflict:
    """What became of one conflict that was to be resolved."""

    id: int
    """Its number."""
    table: str
    """The table; empty where there is no such conflict."""
    key: Optional[Row]
    """The row's key."""
    is_resolved: bool
    """True if it was resolved."""
    has_changed: bool = field(metadata={"name": "changed"})
    """True if the row has changed."""
    before: Optional[Row]
    """The row before; None where there was none."""
    after: Optional[Row]
    """The row afterwards; None where there is none."""
    unknown_columns: list[str] = field(metadata={"name": "unknown"})
    """Columns that are not known, and were left to their defaults."""
    lost_columns: list[str] = field(metadata={"name": "lost"})
    """Columns that are not in the table any more."""
    code: Optional[str]
    """What kind of refusal, such as `row-changed`; None where it was resolved."""
    reason: Optional[str]
    """Why it was not resolved, for people."""
    differences: list[Difference]
    """For `row-changed`, in which columns the row is another one than was known."""


@dataclass(frozen=True)
class ResolveReport:
    """What :meth:`Database.resolve` did."""

    is_dry_run: bool
    """True if nothing was changed."""
    conflicts: list[ResolvedConflict]
    """Each conflict; of all that a filter has chosen, the first 1,000 that were resolved, and the first 1,000 that were not."""
    resolved_count: int
    """How many were resolved."""
    refused_count: int
    """How many were not."""
    changed_tables: list[str]
    """The tables that were changed."""
    violations: list[str]
    """Sentences about rows that refer to others which are not there, because of what was written."""
    warnings: list[str]
    """What is worth knowing."""

    @property
    def resolved(self) -> list[ResolvedConflict]:
        """The conflicts that were resolved."""
        return [conflict for conflict in self.conflicts if conflict.is_resolved]

    @property
    def refused(self) -> list[ResolvedConflict]:
        """The conflicts that were not."""
        return [conflict for conflict in self.conflicts if not conflict.is_resolved]


@dataclass(frozen=True)
class ConflictRule:
    """An answer that is kept, and decides later conflicts with the same question."""

    id: int
    """Its number."""
    table: str
    """The table."""
    kind: str
    """The kind of conflict."""
    operation: str
    """What the change does: `insert`, `update` or `delete`."""
    columns: list[str]
    """The columns in dispute."""
    answer: str
    """`local` or `incoming`."""
    decided_by: str = field(metadata={"name": "by"})
    """Who has decided."""
    decided_at: datetime = field(metadata={"name": "at"})
    """When."""
    conflict: int
    """The number of the conflict that it was decided with."""
