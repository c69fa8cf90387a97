"""Databases and what can be done with them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_int64, c_void_p
from pathlib import Path
from typing import Any, Callable, Literal, Optional, Union

from . import _abi
from ._abi import library
from ._arguments import (
    cells,
    choice,
    conflict_filter,
    limit,
    number,
    path,
    paths,
    table_columns,
    table_policy,
    text,
    texts,
    trust_mode,
)
from ._borrowing import PythonSQLite
from ._calls import Call, log
from ._conflicts import ConflictRecord, ConflictRule, ResolveReport
from ._documents import read
from ._files import file_options
from ._home import Home
from ._progress import Progress
from ._receiving import ApplyReport, InitReport, LogEntry, UndoReport
from ._resolving import Resolver, callback
from ._sending import DiffReport, ShareReport
from ._standing import Acceptance, Examination, Invitation, MergeReport, SnapshotReport, Status
from ._values import ConflictKind, CopyPolicy, MergePolicy, Method, PathLike, Policy, SchemaMode, TrustMode, Value

Tell = Callable[[Progress], object]
"""Is told now and then how far a call has come. What it raises stops the call and comes out of it unchanged."""


class Database:
    """One local database and what can be done with it.

    Made from a path, each call opens the file, does its work in transactions of its own and closes it again; calls may
    run in any number of threads and processes at once. :meth:`borrowing` makes one of a connection that the app has
    open.

        database = buckia.Database("notes.sqlite")
        report = database.apply("inbound")
        for diff in report.rejected:
            print(diff.path, diff.reason)
    """

    def __init__(
        self,
        path: PathLike,
        *,
        home: Optional[Union[PathLike, Home]] = None,
        passphrase: Optional[str] = None,
        timeout: float = 10.0,
    ) -> None:
        """Takes a database file, which need not exist before a call needs it.

        Args:
            path: The file.
            home: The folder with the person's identity, contacts and the clock of their ids, or a :class:`Home`; None
                for `$BUCKIA_HOME`, else the usual one of the system.
            passphrase: What opens the identity where it is protected; that of the :class:`Home` where it is None.
            timeout: How many seconds to wait for another program's lock.
        """
        self.path: Optional[Path] = Path(path)
        """The file; None for a borrowed connection."""
        self._connection: Optional[sqlite3.Connection] = None
        if isinstance(home, Home):
            passphrase = home._passphrase if passphrase is None else passphrase
            home = home._path
        self._home = home
        self._passphrase = passphrase
        self._timeout = timeout

    @classmethod
    def borrowing(
        cls,
        connection: sqlite3.Connection,
        *,
        home: Optional[Union[PathLike, Home]] = None,
        passphrase: Optional[str] = None,
    ) -> Database:
        """Works on a connection that the app has open.

        The connection stays the app's and is not closed. Inside a transaction that the app has open, everything is part
        of that: it happens when the app commits, and applied files stay in their folders until a later call finds them
        applied.

            with connection:
                connection.execute("BEGIN IMMEDIATE")
                buckia.Database.borrowing(connection).apply("inbound")

        The same rules hold as for the connection: the threads that may use it, and one at a time.

        Args:
            connection: The connection. Subclasses are fine.
            home: As of :class:`Database`.
            passphrase: As of :class:`Database`.

        Raises:
            CannotBorrowError: This Python does not give connections away. The message says why.
            TypeError: It is no connection of the module `sqlite3`.
        """
        if not isinstance(connection, sqlite3.Connection):
            raise TypeError(f"a sqlite3.Connection is needed, and this is {type(connection).__name__}")
        PythonSQLite.shared()
        database = cls("", home=home, passphrase=passphrase)
        database.path = None
        database._connection = connection
        return database

    def __repr__(self) -> str:
        if self._connection is None:
            return f"buckia.Database({str(self.path)!r})"
        return f"buckia.Database.borrowing({self._connection!r})"

    @contextmanager
    def _opened(self) -> Iterator[c_void_p]:
        """The database as C has it."""
        handle = c_void_p()
        with ExitStack() as lent:
            if self._connection is None:
                Call().run(library.buckia_open, path(self.path), byref(handle))
            else:
                connection = lent.enter_context(PythonSQLite.shared().lend(self._connection))
                Call().run(library.buckia_open_handle, connection.handle, connection.routines, byref(handle))
            lent.callback(library.buckia_close, handle)
            self._set_up(handle)
            yield handle

    def _set_up(self, handle: c_void_p) -> None:
        home = path(self._home, "the home folder")
        Call().run(library.buckia_set_home, handle, home, text(self._passphrase, "the passphrase"))
        if self._connection is None:
            milliseconds = round(min(max(0.0, self._timeout * 1_000), 2**31 - 1))
            Call().run(library.buckia_set_busy_timeout, handle, milliseconds)

    def init(self, *, trust: Optional[TrustMode] = None, dataset: Optional[str] = None) -> InitReport:
        """Makes the ledger tables, and the database where there is none. :meth:`apply` makes them, too.

        Args:
            trust: Whose files are applied from now on: `any`, or `known` for those of trusted contacts only; None
                leaves it as it is.
            dataset: `new` begins a shared database, before it is copied: the present rows are the same in all copies.
                The id of a dataset makes the database part of that one. Files of other datasets are refused then.

        Raises:
            Error: With the code `dataset-exists` where `new` meets a database that belongs to a dataset.
            DatabaseError: The database cannot be opened or written.
        """
        return read(InitReport, self._command("init", trust=trust, dataset=dataset))

    def _command(self, name: str, /, *, progress: Optional[Tell] = None, **arguments: Any) -> Any:
        call = Call()
        with self._opened() as handle:
            return call.command(handle, name, arguments, file_options(call, progress=progress))

    def status(self, *, words: bool = False) -> Status:
        """Where the database stands: what is shared with whom, what has arrived, what is open.

        Args:
            words: Reads all shared rows, for their word fingerprint.
        """
        return read(Status, self._command("status", words=words))

    def examine(self) -> Examination:
        """What of the database replicates, and what does not and why."""
        return read(Examination, self._command("doctor"))

    def keep_clocks(self, tables: Optional[Iterable[str]] = None) -> list[str]:
        """Lets tables record which diff has last set each of their columns, as the policy `latest` needs it.

        Args:
            tables: The tables; None for all.

        Returns:
            The tables that have got a clock now.
        """
        made: list[str] = self._command("clocks", tables=None if tables is None else list(tables))["clocks"]
        return made

    def snapshot(self, path: PathLike) -> SnapshotReport:
        """Copies the database into a file from which the next diff is made.

        All that is in it counts as known to others.
        """
        return read(SnapshotReport, self._command("snapshot", path=os.fspath(path)))

    def invite(
        self,
        scope: Mapping[str, Any],
        *,
        to: Optional[str] = None,
        folder: Optional[str] = None,
        expires: int = 7,
    ) -> Invitation:
        """Invites one person to get a part of the database.

        Args:
            scope: As of :meth:`share`.
            to: What to call the person here; None for the name on their card.
            folder: Where the files of both are going to be: a folder or a URL.
            expires: How many days the invitation can be answered.

        Raises:
            Error: The scope cannot be followed, or there is no identity.
        """
        report = self._command("invite", scope=dict(scope), to=to, folder=folder, expires=expires)
        return read(Invitation, report)

    def accept(
        self, invitation: str, output: PathLike, *, name: Optional[str] = None, replace: bool = False
    ) -> Acceptance:
        """Accepts an invitation: trusts its author, and writes the answer. Compare the fingerprint with them first.

        Args:
            invitation: The line.
            output: A folder for the answer, or a file that ends in `.accept`.
            name: What to call its author here; None for the name on their card.
            replace: Replaces a file that is there already.
        """
        report = self._command(
            "accept", invitation=invitation, output=os.fspath(output), name=name, replace=replace
        )
        return read(Acceptance, report)

    def merge(
        self,
        theirs: PathLike,
        base: Optional[PathLike] = None,
        output: Optional[PathLike] = None,
        *,
        on_conflict: MergePolicy = "keep-local",
        policies: Optional[Mapping[Union[str, tuple[str, str]], MergePolicy]] = None,
        ignore: Optional[Mapping[str, Iterable[str]]] = None,
        match: Optional[Mapping[str, Iterable[str]]] = None,
        rename: Optional[Mapping[str, Mapping[str, str]]] = None,
        replace: bool = False,
        unrelated: bool = False,
        dry_run: bool = False,
        progress: Optional[Tell] = None,
    ) -> MergeReport:
        """Merges what another database has changed since both had the same rows.

        Args:
            theirs: The other database.
            base: The database that both began with; None where there is none.
            output: The merged database; None to change this one.
            on_conflict: What to do where both have changed a row.
            policies: Policies of tables that have another one, by the table's name, or by a pair of table and column.
            ignore: Columns by table that are never a conflict, and stay as they are here but in new rows.
            match: Columns by table by which rows are the same that both sides have added under different numbers.
            rename: The new names of renamed columns by their old ones, by table.
            replace: Replaces a file that is there already.
            unrelated: Merges databases that share no table.
            dry_run: Changes nothing: the report says what would happen.
            progress: Is told how far the work has come.
        """
        tables: dict[str, str] = {}
        columns: dict[str, dict[str, str]] = {}
        for subject, policy in (policies or {}).items():
            if isinstance(subject, str):
                tables[subject] = policy
            else:
                columns.setdefault(subject[0], {})[subject[1]] = policy
        report = self._command(
            "merge",
            theirs=os.fspath(theirs),
            base=None if base is None else os.fspath(base),
            output=None if output is None else os.fspath(output),
            onConflict=on_conflict,
            onConflictIn=tables,
            onConflictInColumns=columns,
            ignore={table: list(columns) for table, columns in (ignore or {}).items()},
            match={table: list(columns) for table, columns in (match or {}).items()},
            rename={table: dict(columns) for table, columns in (rename or {}).items()},
            progress=progress,
            replace=replace,
            unrelated=unrelated,
            dryRun=dry_run,
        )
        return read(MergeReport, report)

    def diff(
        self,
        since: Optional[PathLike],
        output: PathLike,
        *,
        tables: Iterable[str] = (),
        method: Method = "auto",
        raw: bool = False,
        sign: bool = False,
        replace: bool = False,
        unrelated: bool = False,
        again: bool = False,
        progress: Optional[Tell] = None,
    ) -> DiffReport:
        """Writes what turns an older database into this one into a diff file. Both may be in use.

        Args:
            since: The database as it was; None for none, so that all rows are new.
            output: A folder, which is made where it is missing and gets a file named by its id; a path that ends in
                `.bdiff` or `.changeset`, or names an existing file, is the file itself.
            tables: The tables to compare; all where none are named.
            method: `auto`, `pages`, `rows` or `session`.
            raw: Writes a bare SQLite changeset, without table definitions.
            sign: Signs with the identity of the home folder.
            replace: Replaces a file that is there already.
            unrelated: Compares databases that share no table.
            again: Sends again what was sent since the snapshot was made that the older database is.
            progress: Is told how far the comparison has come.

        Returns:
            What was found and written; `path` is None where nothing has changed.

        Raises:
            Error: A database cannot be read, or the file cannot be written. There is no file then.
        """
        call = Call()
        wanted, count = texts(tables, "tables")
        options = _abi.DiffOptions(
            tables=wanted,
            table_count=count,
            method=choice(method, _abi.METHODS, "the method"),
            raw=raw,
            replace=replace,
            unrelated=unrelated,
            again=again,
            sign=sign,
            progress=call.progress(progress),
        )
        with self._opened() as handle:
            report = call.document(library.buckia_diff, handle, path(since), path(output, "the output"), byref(options))
        return read(DiffReport, report)

    def share(
        self,
        scope: Optional[Mapping[str, Any]],
        to: Union[str, Iterable[str]],
        output: PathLike,
        *,
        unencrypted: bool = False,
        dry_run: bool = False,
        resync: bool = False,
        on_leave: Literal["withdraw", "keep"] = "withdraw",
        propagate: bool = False,
        acknowledge: bool = False,
        replace: bool = False,
        progress: Optional[Tell] = None,
    ) -> ShareReport:
        """Shares some rows with others: all of them first, then what has changed.

        Args:
            scope: What is shared, as Schemas/scope.md describes it, such as
                `{"format": 1, "tables": [{"table": "album", "where": "id = 7"}]}`; None for the only scope that is
                shared with these recipients.
            to: With whom: each the name of a contact, a card or the path of one, or a recipient `age1…`.
            output: As of :meth:`diff`.
            unencrypted: Writes a file that everybody can read.
            dry_run: Writes nothing: the report says which rows would leave.
            resync: Sends all rows again.
            on_leave: What becomes of rows that are not shared any more: `withdraw` removes them there, `keep` leaves
                them.
            propagate: Deletes rows there, too, that went here because of an undo or because somebody does not share
                them any more.
            acknowledge: Writes a file where nothing has changed if changes of others have been applied since the last
                one.
            replace: Replaces a file that is there already.
            progress: Is told how far the comparison has come.

        Returns:
            What was found and written; `path` is None where nothing has changed.

        Raises:
            Error: The scope cannot be followed, a recipient has no key, or there is no identity. Nothing is sent then.
            MisuseError: The app's connection is inside a transaction.
        """
        call = Call()
        recipients, count = texts([to] if isinstance(to, str) else to, "to")
        options = _abi.ShareOptions(
            unencrypted=unencrypted,
            dry_run=dry_run,
            resync=resync,
            keep_on_leave=choice(on_leave, {"withdraw": 0, "keep": 1}, "on_leave") == 1,
            propagate=propagate,
            acknowledge=acknowledge,
            replace=replace,
            progress=call.progress(progress),
        )
        document = None if scope is None else json.dumps(scope, ensure_ascii=False, allow_nan=False)
        with self._opened() as handle:
            report = call.document(
                library.buckia_share,
                handle,
                text(document, "the scope"),
                recipients,
                count,
                path(output, "the output"),
                byref(options),
            )
        return read(ShareReport, report)

    def apply(
        self,
        *files: PathLike,
        resolver: Optional[Resolver] = None,
        on_conflict: Policy = "keep-local",
        policies: Optional[Mapping[Union[str, tuple[str, str]], Policy]] = None,
        ignore: Optional[Mapping[str, Iterable[str]]] = None,
        match: Optional[Mapping[str, Iterable[str]]] = None,
        copies: CopyPolicy = "ask",
        schema: SchemaMode = "additive",
        trust: Optional[TrustMode] = None,
        triggers: bool = False,
        keep: bool = False,
        remove: bool = False,
        dry_run: bool = False,
        refuse_new_dataset: bool = False,
        snapshot: Optional[PathLike] = None,
        memory: int = 0,
        identities: Iterable[PathLike] = (),
        passphrase: Optional[str] = None,
        progress: Optional[Tell] = None,
    ) -> ApplyReport:
        """Applies diff files, raw changesets and whole inbound folders, each file exactly once.

        A file that is damaged or refused changes nothing, is recorded with the reason and does not stop the others:
        that is no error, and the report says so. Applied files are removed from folders, unless `keep` or a transaction
        of the app keeps them.

        Args:
            files: The files and folders.
            resolver: Is asked about each conflict, before the policies.
            on_conflict: `keep-local`, `take-incoming`, `abort` to refuse the whole diff, or `latest`.
            policies: Policies of tables that have another one, by the table's name, or by a pair of table and column.
            ignore: Columns by table in which nothing is taken but with new rows, and nothing is a conflict.
            match: Columns by table by which rows of shares are the same that both sides have added under different
                numbers.
            copies: What to do about the first diff of a sender whose rows are mostly here already, as in a copy of the
                database: `ask` refuses it, `same` takes rows with the same key for the same rows, `apart` keeps those
                that differ beside each other.
            schema: What to do where the schemas differ: `additive`, `exact`, `hold` or `adopt`.
            trust: Whose files are applied from now on: `any` or `known`; None leaves it as it is.
            triggers: True if the database's triggers fire.
            keep: Leaves applied files in their folders.
            remove: Removes applied files that were named by themselves, too.
            dry_run: Changes nothing: the report says what would happen.
            refuse_new_dataset: Refuses files of a dataset where the database belongs to none.
            snapshot: Where a copy of the database goes that the next diff is made from.
            memory: How many bytes SQLite may take up for pages and sorting; 0 for 256 MiB.
            identities: Files of identities that open encrypted files beside the person's own.
            passphrase: The passphrase of files that were encrypted with one.
            progress: Is told how far the work has come.

        Returns:
            What became of each file.

        Raises:
            Error: The database cannot be opened or written. `report` tells of the files that were done before.
            Whatever `resolver` and `progress` raise.
        """
        call = Call()
        rules = [table_policy(subject, policy) for subject, policy in (policies or {}).items()]
        keys, key_count = paths(identities)
        ignored, ignored_count = table_columns(ignore, "ignore")
        matches, match_count = table_columns(match, "match")
        options = _abi.ApplyOptions(
            on_conflict=choice(on_conflict, _abi.POLICIES, "on_conflict"),
            policies=(_abi.TablePolicy * len(rules))(*rules) if rules else None,
            policy_count=len(rules),
            schema=choice(schema, _abi.SCHEMA_MODES, "schema"),
            trust=trust_mode(trust),
            triggers=triggers,
            keep=keep,
            remove=remove,
            dry_run=dry_run,
            refuse_new_dataset=refuse_new_dataset,
            snapshot=path(snapshot, "the snapshot"),
            memory=number(memory, "memory"),
            identities=keys,
            identity_count=key_count,
            passphrase=text(passphrase, "the passphrase"),
            ignored=ignored,
            ignored_count=ignored_count,
            matches=matches,
            match_count=match_count,
            copies=choice(copies, _abi.COPY_POLICIES, "copies"),
            progress=call.progress(progress),
        )
        if resolver is not None:
            options.resolve = callback(call, resolver)
        with self._opened() as handle:
            document, error = call.outcome(library.buckia_apply, handle, *paths(files), byref(options), None)
        report = None if document is None else read(ApplyReport, document)
        if document is not None:
            log(document)
        if error is not None:
            error.report = report
            raise error
        assert report is not None
        return report

    def conflicts(
        self,
        *,
        table: Optional[str] = None,
        diff: Optional[str] = None,
        kind: Optional[ConflictKind] = None,
        open: bool = False,
        newest: Optional[int] = None,
    ) -> list[ConflictRecord]:
        """The recorded conflicts, oldest first.

        Args:
            table: Only those of this table.
            diff: Only those of this diff file: its id, or the digest of a raw changeset.
            kind: Only those of this kind: `data`, `not-found`, `conflict`, `constraint` or `foreign-key`.
            open: Only those that are not decided yet.
            newest: At most so many of these.

        Raises:
            DatabaseError: The database cannot be read.
        """
        call = Call()
        found: list[ConflictRecord] = []
        item = call.items(lambda document: read(ConflictRecord, document), found)
        wanted = conflict_filter(table, diff, kind, open)
        with self._opened() as handle:
            call.run(library.buckia_each_conflict, handle, byref(wanted), limit(newest), item, None)
        return found

    def resolve(
        self,
        conflicts: Union[int, Iterable[int]],
        take: Union[Literal["local", "incoming", "both", "same"], Mapping[str, Value]],
        *,
        decided_by: Optional[str] = None,
        force: bool = False,
        remember: bool = False,
        dry_run: bool = False,
    ) -> ResolveReport:
        """Decides recorded conflicts and changes the rows accordingly, all in one transaction.

        A conflict that cannot be resolved does not stop the others: the report says why.

        Args:
            conflicts: Their numbers (:attr:`ConflictRecord.id`).
            take: `local`, `incoming`, `both` where two rows have one key, `same` where a local row has the UNIQUE value of
                the incoming one, or the values that columns get.
            decided_by: The recorded name of the person who decides.
            force: Overwrites rows that were changed since, and lets rows refer to others that are not there.
            remember: Keeps the answer as a rule for later conflicts with the same question.
            dry_run: Changes nothing.

        Raises:
            ConflictError: No conflicts are recorded.
            DatabaseError: The database cannot be written.
        """
        call = Call()
        wanted = [conflicts] if isinstance(conflicts, int) else conflicts
        numbers = [number(conflict, "the number of a conflict") for conflict in wanted]
        values, _kept = cells({} if isinstance(take, str) else take)
        version = (
            choice(take, _abi.ANSWERS, "take") if isinstance(take, str) else _abi.VERSIONS["values"]
        )
        options = _abi.ResolveOptions(
            values=(_abi.Cell * len(values))(*values) if values else None,
            value_count=len(values),
            decided_by=text(decided_by, "decided_by"),
            force=force,
            remember=remember,
            dry_run=dry_run,
            progress=call.progress(None),
        )
        with self._opened() as handle:
            report = call.document(
                library.buckia_resolve,
                handle,
                (c_int64 * len(numbers))(*numbers),
                len(numbers),
                version,
                byref(options),
            )
        return read(ResolveReport, report)

    def rules(self) -> list[ConflictRule]:
        """The answers that are kept as rules, oldest first.

        Raises:
            DatabaseError: The database cannot be read.
        """
        with self._opened() as handle:
            document = Call().document(library.buckia_rules, handle)
        return [read(ConflictRule, rule) for rule in document["rules"]]

    def forget_rule(self, rule: int) -> None:
        """Forgets a rule: it decides no more conflicts. What it has decided stays.

        Args:
            rule: Its number (:attr:`ConflictRule.id`).

        Raises:
            ConflictError: There is none with this number.
        """
        with self._opened() as handle:
            Call().run(library.buckia_forget_rule, handle, number(rule, "the number of a rule"))

    def log(self, *, newest: Optional[int] = None) -> list[LogEntry]:
        """What has reached the database, oldest first.

        Args:
            newest: At most so many.

        Raises:
            DatabaseError: The database cannot be read.
        """
        with self._opened() as handle:
            if newest is not None:
                document = Call().document(library.buckia_log, handle, limit(newest))
                return [read(LogEntry, entry) for entry in document["entries"]]
            call = Call()
            found: list[LogEntry] = []
            item = call.items(lambda entry: read(LogEntry, entry), found)
            call.run(library.buckia_each_log_entry, handle, item, None)
            return found

    def undo(
        self,
        *diffs: str,
        senders: Iterable[str] = (),
        on_conflict: Policy = "keep-local",
        dry_run: bool = False,
    ) -> UndoReport:
        """Takes back what diffs did to this database, also after their rows have been changed by others.

        Args:
            diffs: Their ids, or the digests of raw changesets. An undo has an id, too, and can be taken back.
            senders: Takes back all that came from these: names of contacts, keys as the log shows them, or `unsigned`.
            on_conflict: What to do about rows that have been changed since: `keep-local` or `take-incoming`.
            dry_run: Changes nothing.

        Raises:
            UndoError: A diff is not known here, not well enough any more, or has been taken back. Nothing has been
                changed then.
        """
        call = Call()
        origins, count = texts(senders, "senders")
        options = _abi.UndoOptions(
            on_conflict=choice(on_conflict, _abi.POLICIES, "on_conflict"),
            dry_run=dry_run,
            senders=origins,
            sender_count=count,
            progress=call.progress(None),
        )
        with self._opened() as handle:
            report = call.document(library.buckia_undo, handle, *texts(diffs, "diffs"), byref(options))
        return read(UndoReport, report)
