"""Where a database stands, and what invitations and merges report."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Optional

from ._conflicts import ConflictRecord
from ._documents import WarningCode, SkippedItem
from ._home import Contact
from ._values import TrustMode


@dataclass(frozen=True)
class SharedRows:
    """How many rows of a table are shared."""

    table: str
    """The table."""
    rows: int
    """How many rows with a key."""


@dataclass(frozen=True)
class Share:
    """What is shared with some people."""

    recipients: list[str]
    """Their names."""
    name: Optional[str]
    """The name of the scope."""
    scope_tables: list[str]
    """The tables that the scope names."""
    stream: str
    """The stream of its diffs."""
    sequence: int
    """The number of the last diff; 0 where nothing was sent yet."""
    id: Optional[str]
    """The id of the last diff."""
    made_at: Optional[datetime]
    """When it was made."""
    tables: list[SharedRows]
    """The tables with rows that are shared."""
    acknowledged: list[dict[str, Any]]
    """How far recipients have applied it: `sender` and `through`."""


@dataclass(frozen=True)
class Stream:
    """What another person shares with this database."""

    sender: str
    """The sender, for people."""
    stream: str
    """The stream of their diffs."""
    sequence: int
    """The number of the newest diff that was applied; 0 for none."""
    id: Optional[str]
    """Its id."""
    made_at: Optional[datetime]
    """When it was made."""
    applied_at: Optional[datetime]
    """When it was applied."""
    waiting: int
    """How many diffs wait."""
    missing: Optional[str]
    """The diff that the first of them waits for."""
    is_ended: bool
    """True if nothing more comes."""
    tables: list[SharedRows]
    """The tables of which it has brought rows."""


@dataclass(frozen=True)
class Status:
    """Where a database stands."""

    trust: Optional[TrustMode]
    """Whose files are applied; None without a ledger."""
    dataset: Optional[str]
    """The shared database that it belongs to."""
    ledger: Optional[dict[str, Any]]
    """How many files have come to which state; None without a ledger."""
    shares: list[Share]
    """What is shared with whom."""
    streams: list[Stream]
    """What others share with this database."""
    words: list[dict[str, Any]]
    """The shared rows in words, where asked for."""
    conflicts: dict[str, int]
    """How many conflicts are `open`, and in `total`."""
    warnings: list[str]
    """What is worth knowing."""
    warning_codes: list[WarningCode]
    """The same for programs."""


@dataclass(frozen=True)
class ReplicatedTable:
    """A table that replicates."""

    name: str
    """The table."""
    key: str
    """What tells its rows apart."""


@dataclass(frozen=True)
class Examination:
    """What of a database replicates, and what does not and why."""

    replicates: list[ReplicatedTable]
    """The tables that do."""
    skipped: list[SkippedItem]
    """What does not."""
    warnings: list[str]
    """What does, but with something to know."""
    warning_codes: list[WarningCode]
    """The same for programs."""


@dataclass(frozen=True)
class SnapshotReport:
    """What :meth:`Database.snapshot` made."""

    path: Path
    """The file."""
    bytes: int
    """Its size."""
    replaced: bool
    """True if it replaced an earlier one: changes since then that were not sent are in none of the next diffs."""


@dataclass(frozen=True)
class MergeReport:
    """What :meth:`Database.merge` did."""

    path: Path
    """The merged database."""
    has_base: bool = field(metadata={"name": "base"})
    """True if there was a base."""
    is_dry_run: bool
    """True if nothing was changed, because only a report was wanted."""
    is_clean: bool
    """True if nothing is left to decide."""
    inserted: int
    """Rows inserted."""
    updated: int
    """Rows updated."""
    deleted: int
    """Rows deleted."""
    conflicts: int
    """Conflicts of rows, which are recorded in the merged database."""
    omitted: int
    """Changes that were not written."""
    schema_conflicts: list[dict[str, Any]]
    """What both sides have changed in the schema, each in another way."""
    schema_changes: list[str]
    """What was created, changed and dropped, as sentences."""
    changed_tables: list[str]
    """The tables that changed."""
    skipped: list[SkippedItem]
    """What could not be compared or taken."""
    warnings: list[str]
    """What is worth knowing."""
    warning_codes: list[WarningCode]
    """The same for programs."""
    seconds: float
    """How long it took."""
    records: list[ConflictRecord] = field(default_factory=list)
    """The first of the conflicts that a dry run would have recorded."""


@dataclass(frozen=True)
class Invitation:
    """An invitation that was made."""

    text: str
    """The line to send to the person, and to no one else."""
    invitation: dict[str, Any]
    """What it says, without its secret, as `--json` has it."""
    warnings: list[str]
    """What is worth knowing."""


@dataclass(frozen=True)
class Acceptance:
    """What accepting an invitation did."""

    outcome: Literal["accepted", "known"]
    """`known` where it was accepted before."""
    contact: Optional[Contact]
    """The person who invites, who is trusted now; None where it was accepted before."""
    path: Optional[Path]
    """The file of the answer."""
    answer: str
    """The answer itself."""
    warnings: list[str]
    """What is worth knowing."""
