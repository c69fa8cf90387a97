"""What is reported of files that are made and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from ._documents import WarningCode, SkippedItem
from ._values import Value


@dataclass(frozen=True)
class ColumnRename:
    """A column that has another name in the older database."""

    old: str = field(metadata={"name": "from"})
    """Its name there."""
    new: str = field(metadata={"name": "to"})
    """Its name here."""


@dataclass(frozen=True)
class TableDiff:
    """One table that changed."""

    name: str
    """The table."""
    inserted: int
    """Rows in the newer database only."""
    updated: int
    """Rows with other values."""
    deleted: int
    """Rows in the older database only."""
    method: str
    """How the difference was found."""
    method_reason: Optional[str]
    """Why it was found row by row where it was to be found by pages."""
    is_new: bool
    """True if the older database lacks the table."""
    new_columns: list[str]
    """Columns that the older database lacks."""
    renames: list[ColumnRename]
    """Columns that have another name there."""


@dataclass(frozen=True)
class DiffReport:
    """What :meth:`Database.diff` did."""

    id: Optional[str]
    """The id of the diff file; None where nothing has changed."""
    path: Optional[Path]
    """The file that was written; None where nothing has changed."""
    bytes: int
    """Its size."""
    method: str
    """The method that was asked for."""
    tables: list[TableDiff]
    """What changed."""
    skipped: list[SkippedItem]
    """What does not travel."""
    compared_by_rows: list[SkippedItem]
    """Tables that had to be compared row by row, and why."""
    includes_schema: bool
    """True if the newer database's whole schema travels, for those who adopt it."""
    warnings: list[str]
    """What is worth knowing."""
    warning_codes: list[WarningCode]
    """The same for programs."""
    seconds: float
    """How long it took."""


@dataclass(frozen=True)
class Delivery:
    """A file that was written to where it goes."""

    id: str
    """The diff's id."""
    path: Optional[Path]
    """Where it is."""
    bytes: int
    """Its size."""
    recipients: list[str]
    """Who gets it."""


@dataclass(frozen=True)
class SharedRow:
    """A row that a dry run would send."""

    operation: str = field(metadata={"name": "op"})
    """What happens to it at the receivers."""
    key: list[Value]
    """The values of its key; the whole row where it has none."""


@dataclass(frozen=True)
class SharedTable:
    """What is sent of one table."""

    name: str
    """The table."""
    columns: list[str]
    """The columns that others get."""
    inserted: int
    """Rows that are new to the receivers."""
    updated: int
    """Rows of which they get other values."""
    deleted: int
    """Rows that were deleted here."""
    withdrawn: int
    """Rows that are not shared any more."""
    kept: int
    """Rows that are not shared any more and stay where they are."""
    changes: list[SharedRow]
    """The rows. Empty unless it was a dry run."""


@dataclass(frozen=True)
class ShareReport:
    """What :meth:`Database.share` did."""

    id: Optional[str]
    """The id of the diff file; None where nothing has changed, and in a dry run."""
    path: Optional[Path]
    """The file that was written."""
    files: list[Delivery]
    """All files of the diff: one for up to 64 recipients."""
    bytes: int
    """The size of the file."""
    is_snapshot: bool
    """True if it holds everything in the scope, and not only what has changed."""
    sequence: int
    """Its number in the stream; 0 where there is none."""
    is_dry_run: bool
    """True if nothing was written."""
    tables: list[SharedTable]
    """What is sent."""
    skipped: list[SkippedItem]
    """What does not travel."""
    delivered: list[Delivery]
    """Files of earlier calls that were delivered first."""
    is_incomplete: bool
    """True if changes are left for another call, because the one output was taken by an earlier file."""
    warnings: list[str]
    """What is worth knowing."""
    warning_codes: list[WarningCode]
    """The same for programs."""
    seconds: float
    """How long it took."""


@dataclass(frozen=True)
class TableCounts:
    """How many changes of one table there are."""

    name: str
    """The table."""
    inserted: int
    """Rows inserted."""
    updated: int
    """Rows updated."""
    deleted: int
    """Rows deleted."""


@dataclass(frozen=True)
class ChangesetReport:
    """What :func:`invert` or :func:`concat` has written."""

    id: Optional[str]
    """The id of the file; None where no changes are left."""
    path: Optional[Path]
    """The file; None where no changes are left."""
    bytes: int
    """Its size."""
    tables: list[TableCounts]
    """What is in it."""
    warnings: list[str]
    """What is worth knowing."""
    warning_codes: list[WarningCode]
    """The same for programs."""
    seconds: float
    """How long it took."""


@dataclass(frozen=True)
class VerifiedFile:
    """One file and its state."""

    path: Path
    """The file."""
    id: Optional[str]
    """Its id, where it has one."""
    is_good: bool = field(metadata={"name": "ok"})
    """True if everything about it is in order."""
    sender: str
    """The sender, for people."""
    signature: str
    """`none`, `valid`, `invalid`, or `unknown` where the file could not be read that far."""
    is_encrypted: bool
    """True if it is encrypted."""
    reason: Optional[str]
    """What is wrong with it."""


@dataclass(frozen=True)
class VerifyReport:
    """What :func:`verify` found."""

    files: list[VerifiedFile]
    """The files, by id."""
    misnamed: list[Path]
    """Diff files in the folders that go by another name than their id, and were not looked at for that."""

    @property
    def is_good(self) -> bool:
        """True if all files are in order."""
        return all(file.is_good for file in self.files)
