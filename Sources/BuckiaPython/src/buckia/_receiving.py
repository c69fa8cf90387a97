"""What is reported of what has reached a database."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Optional

from ._conflicts import ConflictRecord
from ._documents import WarningCode
from ._values import DiffState, TrustMode


@dataclass(frozen=True)
class SchemaNote:
    """What becomes of a table or a column that is not the same in a diff and here."""

    action: str
    """What is done, such as `create` or `hold`."""
    table: str
    """The table."""
    column: Optional[str]
    """The column; None for the table itself."""
    detail: str
    """Why, for people."""


@dataclass(frozen=True)
class DiffOutcome:
    """What became of one file."""

    id: Optional[str]
    """The diff file's id; None where it has none or could not be read."""
    path: Path
    """The file."""
    sender: str
    """The sender, for people."""
    sender_key: Optional[str]
    """The verified key of the sender in hex; None where no signature says whose it is."""
    state: DiffState
    """`applied`, `already-applied`, `waiting`, `held`, `quarantined` or `rejected`."""
    inserted: int
    """Rows inserted."""
    updated: int
    """Rows updated."""
    deleted: int
    """Rows deleted."""
    conflicts: int
    """Conflicts met."""
    decided_by_rule: int
    """Those of them that a rule has decided."""
    omitted: int
    """Changes that were not written."""
    schema_changes: list[str]
    """What was created and added, as sentences."""
    plan: list[SchemaNote]
    """What becomes of every table and column that is not the same in the diff and here."""
    held_parts: int
    """How many tables and columns are kept for an upgrade."""
    reason: Optional[str]
    """Why it was refused or waits."""
    code: Optional[str]
    """The code of the error behind the reason."""
    is_removed: bool
    """True if the file has been removed, because all it holds is in the database."""
    warnings: list[str]
    """What is worth knowing although it is no refusal."""
    warning_codes: list[WarningCode]
    """The same for programs."""
    changed_tables: list[str]
    """The tables that changed."""


@dataclass(frozen=True)
class ApplyReport:
    """What :meth:`Database.apply` did."""

    trust: TrustMode
    """Whose files are applied: `any` or `known`."""
    diffs: list[DiffOutcome]
    """Each file, in the order of applying."""
    answers: list[dict[str, Any]]
    """Each answer to an invitation, as `--json` has it."""
    ignored: int
    """How many other files in the folders were left alone."""
    misnamed: list[Path]
    """Diff files in the folders that go by another name than their id, and were left alone for that."""
    created_ledger: bool
    """True if the ledger tables were made just now."""
    is_dry_run: bool
    """True if nothing was changed, because only a report was wanted."""
    outgoing_folders: list[Path]
    """The folders of which nothing was removed, because they hold files that were made from this very database."""
    warnings: list[str]
    """What is worth knowing about the database; what is about one file is with that."""
    warning_codes: list[WarningCode]
    """The same for programs."""
    seconds: float
    """How long it took."""
    snapshot: Optional[Path] = None
    """The copy of the database that was made when all files were done."""
    conflicts: list[ConflictRecord] = field(default_factory=list)
    """The first of the conflicts that a dry run would have recorded."""

    @property
    def applied(self) -> list[DiffOutcome]:
        """The files that were applied now."""
        return [diff for diff in self.diffs if diff.state == "applied"]

    @property
    def rejected(self) -> list[DiffOutcome]:
        """The files that were refused."""
        return [diff for diff in self.diffs if diff.state == "rejected"]

    @property
    def changed_tables(self) -> set[str]:
        """The tables that were changed."""
        return {table for diff in self.diffs for table in diff.changed_tables}


@dataclass(frozen=True)
class LogEntry:
    """A diff that has reached the database."""

    id: Optional[str]
    """The diff file's id; None for a raw changeset without one."""
    sender: str
    """The sender, for people."""
    sender_key: Optional[str]
    """The verified key of the sender in hex; None where no signature says whose it is."""
    state: DiffState
    """What became of it; see :attr:`DiffOutcome.state`."""
    applied_at: datetime
    """When."""
    inserted: int
    """Rows inserted."""
    updated: int
    """Rows updated."""
    deleted: int
    """Rows deleted."""
    conflicts: int
    """Conflicts met."""
    omitted: int
    """Changes that were not written."""
    reason: Optional[str]
    """Why it was refused or waits."""
    file: str
    """The name of the file, without its folder."""
    digest: str
    """SHA-256 that identifies it, in hex."""


@dataclass(frozen=True)
class UndoneDiff:
    """One diff that was taken back."""

    diff: str
    """Its id, or its digest."""
    id: str
    """The id of the undo, by which that can be taken back."""
    inserted: int
    """Rows inserted: those that the diff had deleted."""
    updated: int
    """Rows updated."""
    deleted: int
    """Rows deleted: those that the diff had inserted."""
    conflicts: int
    """Rows that have been changed since."""
    omitted: int
    """What was not taken back because of a conflict."""
    changed_tables: list[str]
    """The tables that changed."""
    warnings: list[str]
    """What is worth knowing."""
    warning_codes: list[WarningCode]
    """The same for programs."""


@dataclass(frozen=True)
class SkippedUndo:
    """A diff of a sender that could not be taken back."""

    diff: str
    """Its id, or its digest."""
    code: str
    """What kind of reason."""
    reason: str
    """Why, for people."""


@dataclass(frozen=True)
class UndoReport:
    """What :meth:`Database.undo` did."""

    undone: list[UndoneDiff]
    """What was taken back, the newest first."""
    skipped: list[SkippedUndo]
    """What of a sender could not be taken back. A diff that was named by itself is an error instead."""
    is_dry_run: bool
    """True if everything was only tried."""
    warnings: list[str]
    """What is worth knowing."""
    warning_codes: list[WarningCode]
    """The same for programs."""


@dataclass(frozen=True)
class InitReport:
    """What :meth:`Database.init` did."""

    created: bool
    """True if the ledger tables were made just now."""
    created_database: bool
    """True if the database itself was made just now."""
    trust: TrustMode
    """Whose files are applied."""
    dataset: Optional[str]
    """The shared database that it belongs to."""
    warnings: list[str]
    """What is worth knowing."""
    warning_codes: list[WarningCode]
    """The same for programs."""
