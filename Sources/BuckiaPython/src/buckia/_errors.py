"""What Buckia raises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._receiving import ApplyReport


class Error(Exception):
    """What went wrong, with which file, and what to do. All errors of Buckia are of this class.

    What a resolver raises comes out as it is and is not wrapped.
    """

    code: str
    """A word that stays the same between versions, such as `no-database`."""
    message: str
    """A sentence for people."""
    path: Optional[Path]
    """The file it is about."""
    offset: Optional[int]
    """The offset in the file, in bytes."""
    report: Optional[ApplyReport] = None
    """What had been applied before, where applying several files has stopped. That stays."""

    def __init__(self, code: str, message: str, path: Optional[Path] = None, offset: Optional[int] = None) -> None:
        super().__init__(code, message, path, offset)
        self.code = code
        self.message = message
        self.path = path
        self.offset = offset

    def __str__(self) -> str:
        if self.path and str(self.path) not in self.message:
            return f"{self.path}: {self.message}"
        return self.message


class BusyError(Error):
    """Another program has locked the database: the same call may succeed later."""


class DatabaseError(Error):
    """The database is missing, damaged, none at all, or does not have what the call needs."""


class FileError(Error):
    """A file is missing, damaged, encrypted for others, or cannot be read or written."""


class IdentityError(Error):
    """An identity, a contact or a recipient is missing or not in order."""


class ConflictError(Error):
    """A conflict was met that is not to be decided, or there is none with that number."""


class UndoError(Error):
    """A diff cannot be taken back: it is unknown here, what it did is not kept, or it has been taken back."""


class MisuseError(Error):
    """The call makes no sense as it is."""


class CannotBorrowError(MisuseError):
    """Connections of this Python cannot be borrowed; the message says why. Name the file instead."""


_BUSY = 3
_MISUSE = 64

# All others are of files.
_CLASSES: dict[type[Error], str] = {
    BusyError: "busy",
    DatabaseError: """
        no-database damaged-database newer-ledger altered-ledger transaction-lost deferred-violations nothing-in-common
        no-such-table no-clock invalid-selection invalid-scope dangling-reference refused-table missing-table
        key-differs columns-differ no-ids-left schema-differs refused-definition dataset-exists row-changed row-refused
        broken-reference
    """,
    IdentityError: """
        no-identity identity-exists not-private passphrase-needed invalid-card invalid-name no-such-contact
        contact-exists ended-key own-key other-fingerprint cannot-sign cannot-encrypt invalidRecipient invalidIdentity
        mixedRecipients
    """,
    ConflictError: "conflict no-such-conflict no-such-rule unresolvable",
    UndoError: "no-such-diff no-such-sender already-undone not-kept",
    MisuseError: "misuse wrongByteCount wrongLength wrongCharacter aboveMaximum",
}
_BY_CODE = {code: kind for kind, codes in _CLASSES.items() for code in codes.split()}


def error_class(code: str, status: int) -> type[Error]:
    """The class of an error of the library."""
    if status == _BUSY:
        return BusyError
    if status == _MISUSE:
        return MisuseError
    if code.startswith("sqlite-"):
        return DatabaseError
    return _BY_CODE.get(code, FileError)
