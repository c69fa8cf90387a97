"""Buckia sends the changes of one SQLite database to another and applies what others send back.

It works offline, applies each file exactly once, and needs no server: a shared folder, an email or a USB stick is
enough.

    import buckia

    sent = buckia.Database("now.sqlite").diff("before.sqlite", "outbox")
    report = buckia.Database("notes.sqlite").apply("inbound")

:class:`Database` is the entry point: one database, which is a file or a connection that the app has open. Values of
rows are those of Python's `sqlite3`: None, int, float, str and bytes. Errors are exceptions, :class:`Error`.
"""

from ._backups import BackupPoint, BackupReport, BackupStore, PruneReport, RestoredRows, StoreFault, StoreReport
from ._changes import Change, Changes, changes
from ._conflicts import (
    ConflictRecord,
    ConflictRule,
    Difference,
    MissingParent,
    Resolution,
    ResolvedConflict,
    ResolveReport,
)
from ._database import Database
from ._documents import WarningCode, SkippedItem
from ._errors import (
    BusyError,
    CannotBorrowError,
    ConflictError,
    DatabaseError,
    Error,
    FileError,
    IdentityError,
    MisuseError,
    UndoError,
)
from ._files import concat, invert, verify
from ._home import Card, Contact, Home
from ._ksuid import KSUID
from ._progress import Progress
from ._receiving import ApplyReport, DiffOutcome, InitReport, LogEntry, SchemaNote, SkippedUndo, UndoneDiff, UndoReport
from ._resolving import Answer, Conflict, Resolver
from ._sending import (
    ChangesetReport,
    ColumnRename,
    Delivery,
    DiffReport,
    SharedRow,
    SharedTable,
    ShareReport,
    TableCounts,
    TableDiff,
    VerifiedFile,
    VerifyReport,
)
from ._standing import (
    Acceptance,
    Examination,
    Invitation,
    MergeReport,
    ReplicatedTable,
    Share,
    SharedRows,
    SnapshotReport,
    Status,
    Stream,
)
from ._values import (
    ConflictKind,
    ConflictOutcome,
    CopyPolicy,
    DiffState,
    MergePolicy,
    Method,
    PathLike,
    Policy,
    Row,
    SchemaMode,
    TrustMode,
    Value,
)
from ._version import __version__
from ._versions import library_version, version_text

__all__ = [
    "Acceptance",
    "Answer",
    "ApplyReport",
    "BackupPoint",
    "BackupReport",
    "BackupStore",
    "BusyError",
    "CannotBorrowError",
    "Card",
    "Change",
    "Changes",
    "ChangesetReport",
    "ColumnRename",
    "Conflict",
    "ConflictError",
    "ConflictKind",
    "ConflictOutcome",
    "ConflictRecord",
    "ConflictRule",
    "Contact",
    "CopyPolicy",
    "Database",
    "DatabaseError",
    "Delivery",
    "DiffOutcome",
    "DiffReport",
    "DiffState",
    "Difference",
    "Error",
    "Examination",
    "FileError",
    "Home",
    "IdentityError",
    "InitReport",
    "Invitation",
    "KSUID",
    "LogEntry",
    "MergePolicy",
    "MergeReport",
    "Method",
    "MissingParent",
    "MisuseError",
    "PathLike",
    "Policy",
    "Progress",
    "PruneReport",
    "WarningCode",
    "ReplicatedTable",
    "Resolution",
    "ResolveReport",
    "ResolvedConflict",
    "Resolver",
    "RestoredRows",
    "Row",
    "SchemaMode",
    "SchemaNote",
    "Share",
    "ShareReport",
    "SharedRow",
    "SharedRows",
    "SharedTable",
    "SkippedItem",
    "SkippedUndo",
    "SnapshotReport",
    "Status",
    "StoreFault",
    "StoreReport",
    "Stream",
    "TableCounts",
    "TableDiff",
    "TrustMode",
    "UndoError",
    "UndoReport",
    "UndoneDiff",
    "Value",
    "VerifiedFile",
    "VerifyReport",
    "__version__",
    "changes",
    "concat",
    "invert",
    "library_version",
    "verify",
    "version_text",
]
