"""Backups: stores of states from which databases are restored."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Optional, Union

from ._calls import Call
from ._database import Database, Tell
from ._documents import read
from ._files import file_options
from ._home import Home
from ._receiving import ApplyReport
from ._values import MergePolicy, PathLike


@dataclass(frozen=True)
class BackupPoint:
    """A state of a database in a store."""

    id: str
    """Its id."""
    history: str
    """The id of the history to which it belongs: that of one database on one device."""
    sequence: int
    """Its number in the history, from 1."""
    time: datetime
    """When the state was read."""
    note: Optional[str]
    """What was noted about it."""
    database_bytes: int
    """The size of the database."""
    is_signed: bool
    """True if it is signed."""
    bytes: Optional[int] = None
    """The size of its object in the store."""
    is_encrypted: bool = False
    """True if restoring it needs a secret key."""
    is_verified: bool = False
    """True if it was restored and checked on this device."""
    is_broken: bool = False
    """True if an object that it needs is missing or cannot be read."""


@dataclass(frozen=True)
class BackupReport:
    """What a backup has stored."""

    points: list[BackupPoint]
    is_new: bool
    """False if the database has not changed since the point was made, and nothing was stored."""
    is_complete: bool
    """True if all pages were stored, and not only those that have changed."""
    pages: int
    """The number of stored pages."""
    fault: Optional[str]
    """What the check by restoring has found; None for nothing."""
    removed: list[BackupPoint]
    """The points that the rules do not keep."""

    @property
    def point(self) -> BackupPoint:
        """The point with the present state."""
        return self.points[0]


@dataclass(frozen=True)
class RestoredRows:
    """What came of restoring rows."""

    point: BackupPoint
    rows: Optional[ApplyReport]
    """The report of the diff with them; None if they are as they were."""
    missing_columns: list[str]
    """The columns that the database no longer has, whose values stay out."""


@dataclass(frozen=True)
class PruneReport:
    """What a pruning has removed, or would remove."""

    is_dry_run: bool
    kept: int
    """The number of points that stay by a rule."""
    removed: list[BackupPoint]
    needed: list[BackupPoint]
    """The points that stay without a rule: their pages are needed, and no key that opens them was given."""


@dataclass(frozen=True)
class StoreFault:
    """A fault of a store."""

    path: str
    """The object."""
    message: str


@dataclass(frozen=True)
class StoreReport:
    """What a check of a store has found."""

    is_good: bool = field(metadata={"name": "ok"})
    points: list[BackupPoint]
    faults: list[StoreFault]
    restored: list[str]
    """The ids of the points that were restored to a temporary file and checked."""
    signers: list[str]
    """The public keys that have signed points."""


class BackupStore:
    """A folder with states of databases.

        store = buckia.BackupStore("/media/disk/backups")
        store.back_up(buckia.Database("notes.sqlite"), keep="hourly=24,daily=30")
        store.restore("restored.sqlite", at="2026-03-01 12:30")
    """

    def __init__(
        self, folder: PathLike, *, home: Optional[Union[PathLike, Home]] = None, identities: Iterable[PathLike] = ()
    ) -> None:
        """Takes a folder, which the first backup makes.

        Args:
            folder: The folder.
            home: The folder with the person's identity and what this device knows of its backups, or a :class:`Home`.
            identities: Files of identities that open an encrypted store, beside the person's own.
        """
        self.folder = Path(folder)
        self._home = home._path if isinstance(home, Home) else home
        self._passphrase = home._passphrase if isinstance(home, Home) else None
        self._identities = list(identities)

    def __repr__(self) -> str:
        return f"buckia.BackupStore({str(self.folder)!r})"

    def _call(
        self, name: str, database: Optional[Database] = None, *, progress: Optional[Tell] = None, **arguments: Any
    ) -> Any:
        call = Call()
        options = file_options(call, self._home, self._passphrase, self._identities, progress=progress)
        arguments["store"] = os.fspath(self.folder)
        if database is None:
            return call.command(None, name, arguments, options)
        with database._opened() as handle:
            return call.command(handle, name, arguments, options)

    def back_up(
        self,
        database: Database,
        *,
        note: Optional[str] = None,
        to: Optional[Iterable[str]] = None,
        keep: Optional[str] = None,
        drill: bool = False,
        unencrypted: bool = False,
        unsigned: bool = False,
        accept_damage: bool = False,
        progress: Optional[Tell] = None,
    ) -> BackupReport:
        """Stores the present state of a database, which can be in use. Nothing is stored if nothing has changed.

        Args:
            database: The database, by its path. Its home signs, and has the record of what was stored.
            note: A note that is kept with the point.
            to: Contacts, cards or recipients `age1…` who can open it; None for those of the last backup.
            keep: Removes the points that these rules do not keep, such as `hourly=24,daily=30`.
            drill: Restores the point to a temporary file, and checks that.
            unencrypted: Stops encrypting, although the last backup is encrypted.
            unsigned: Does not sign.
            accept_damage: Stores a damaged database, or one that has lost its tables.
            progress: Is told now and then that the call goes on. What it raises stops the call.

        Raises:
            DatabaseError: The database is damaged, empty or busy. Earlier points stay as they are.
            Error: The store cannot be written.
        """
        report = self._call(
            "backup",
            database,
            progress=progress,
            note=note,
            to=None if to is None else list(to),
            keep=keep,
            drill=drill,
            unencrypted=unencrypted,
            unsigned=unsigned,
            acceptDamage=accept_damage,
        )
        return read(BackupReport, report)

    def history(self) -> list[BackupPoint]:
        """The points of the store, the oldest first."""
        return [read(BackupPoint, point) for point in self._call("history")["points"]]

    def restore(
        self,
        output: PathLike,
        *,
        at: Optional[str] = None,
        history: Optional[str] = None,
        progress: Optional[Tell] = None,
    ) -> BackupPoint:
        """Restores a point to a new file, which appears complete and checked, or not at all.

        Args:
            output: The file. One of that name is never replaced.
            at: The id of the point, or a time in UTC, before which it is the newest; None for the newest.
            history: The history of the point, if the store has several.
            progress: As of :meth:`back_up`.

        Raises:
            Error: There is no such point, an object is damaged, or no key opens it.
        """
        report = self._call("restore", progress=progress, output=os.fspath(output), at=at, history=history)
        return read(BackupPoint, report["point"])

    def restore_into(
        self, database: Database, *, at: Optional[str] = None, history: Optional[str] = None
    ) -> BackupPoint:
        """Replaces the content of a database, also while it is in use. What it was becomes a point first.

        Args and errors as of :meth:`restore`.
        """
        return read(BackupPoint, self._call("restore", database, at=at, history=history)["point"])

    def restore_rows(
        self,
        database: Database,
        scope: Mapping[str, Any],
        *,
        at: Optional[str] = None,
        history: Optional[str] = None,
        on_conflict: MergePolicy = "take-incoming",
        delete_newer: bool = False,
        dry_run: bool = False,
    ) -> RestoredRows:
        """Restores rows as an ordinary diff, which :meth:`Database.undo` undoes.

        Args:
            database: The database.
            scope: The rows, as of :meth:`Database.share`.
            at: As of :meth:`restore`.
            history: As of :meth:`restore`; None for that of the database.
            on_conflict: What to do about rows that have other values now.
            delete_newer: Deletes the rows that the point does not have.
            dry_run: Changes nothing: the report says what would happen.
        """
        report = self._call(
            "restore rows",
            database,
            scope=dict(scope),
            at=at,
            history=history,
            onConflict=on_conflict,
            deleteNewer=delete_newer,
            dryRun=dry_run,
        )
        return read(RestoredRows, report)

    def prune(
        self, keep: str, *, history: Optional[str] = None, to: Optional[Iterable[str]] = None, dry_run: bool = False
    ) -> PruneReport:
        """Removes the points that no rule keeps. :meth:`restore_pruned` brings them back for a week.

        Args:
            keep: The rules, such as `hourly=24,daily=30`.
            history: The history, if the store has several.
            to: Who can open the points that are written again, in an encrypted store.
            dry_run: Removes nothing.
        """
        recipients = None if to is None else list(to)
        return read(PruneReport, self._call("prune", keep=keep, history=history, to=recipients, dryRun=dry_run))

    def restore_pruned(self) -> list[BackupPoint]:
        """Brings back the points that the last pruning has removed."""
        return [read(BackupPoint, point) for point in self._call("prune undo")["points"]]

    def verify(self) -> StoreReport:
        """Checks the bytes, the order and the signatures of all objects, and restores the newest point if a key opens it."""
        return read(StoreReport, self._call("verify store"))
