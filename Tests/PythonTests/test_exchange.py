"""Sending what has changed, and applying it."""

import os
import shutil
import signal
import sqlite3
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Callable

import pytest
from conftest import People, rows, run

import buckia


def test_what_anna_changes_arrives_at_ben_exactly_once(people: People) -> None:
    sent = people.send(
        "INSERT INTO notes VALUES (3, 'Harbour', NULL, 30)",
        "UPDATE notes SET title = 'Ship' WHERE id = 1",
        "DELETE FROM notes WHERE id = 2",
    )
    assert sent.path is not None and sent.bytes == sent.path.stat().st_size
    table = sent.tables[0]
    assert (table.name, table.inserted, table.updated, table.deleted) == ("notes", 1, 1, 1)

    report = people.database.apply(people.inbound, keep=True)
    assert [(diff.id, diff.state, diff.changed_tables) for diff in report.diffs] == [(sent.id, "applied", ["notes"])]
    assert report.changed_tables == {"notes"} and report.created_ledger
    assert rows(people.ben) == [(1, "Ship"), (3, "Harbour")]

    run(people.ben, "UPDATE notes SET title = 'Yacht' WHERE id = 1")
    again = people.database.apply(people.inbound)
    assert [diff.state for diff in again.diffs] == ["already-applied"] and again.applied == []
    assert rows(people.ben) == [(1, "Yacht"), (3, "Harbour")]
    assert people.files() == []


def test_nothing_is_written_where_nothing_has_changed(people: People) -> None:
    report = buckia.Database(people.anna).diff(people.base, people.inbound)
    assert (report.id, report.path, report.bytes, report.tables) == (None, None, 0, [])
    assert not people.inbound.exists()


def test_all_rows_are_new_where_there_is_no_older_database(people: People, tmp_path: Path) -> None:
    sent = buckia.Database(people.anna).diff(None, tmp_path / "all.bdiff")
    assert sent.path == tmp_path / "all.bdiff"
    fresh = tmp_path / "fresh.sqlite"
    report = buckia.Database(fresh).init()
    assert report.created_database and report.trust == "any"
    assert buckia.Database(fresh).apply(sent.path).diffs[0].inserted == 3
    assert rows(fresh) == rows(people.anna)


def test_copies_of_a_dataset_have_the_same_rows(people: People, tmp_path: Path) -> None:
    report = buckia.Database(people.anna).init(dataset="new")
    assert report.dataset is not None and len(report.dataset) == 32
    with pytest.raises(buckia.Error) as refused:
        buckia.Database(people.anna).init(dataset="new")
    assert refused.value.code == "dataset-exists"
    with pytest.raises(buckia.MisuseError):
        buckia.Database(people.anna).init(dataset="old")
    other = tmp_path / "other.sqlite"
    shutil.copy(people.base, other)
    assert buckia.Database(other).init(dataset=report.dataset).dataset == report.dataset


def test_values_are_those_of_sqlite3(people: People) -> None:
    values = [None, 0, -(2**63), 2**63 - 1, 1.0, 0.1, float("inf"), "", "naïve 😀", "a\0b", b"", b"\0\xff", 2**53 + 1]
    run(people.base, "CREATE TABLE kinds (id INTEGER PRIMARY KEY, value)")
    run(people.anna, "CREATE TABLE kinds (id INTEGER PRIMARY KEY, value)")
    run(people.ben, "CREATE TABLE kinds (id INTEGER PRIMARY KEY, value)")
    with closing(sqlite3.connect(people.anna)) as connection, connection:
        connection.executemany("INSERT INTO kinds (value) VALUES (?)", [(value,) for value in values])
    sent = people.send()
    assert sent.path is not None
    found = [change.new["value"] for change in buckia.changes(sent.path) if change.table == "kinds" and change.new]
    assert [(type(value), value) for value in found] == [(type(value), value) for value in values]
    people.database.apply(people.inbound)
    stored = [value for (value,) in rows(people.ben, "SELECT value FROM kinds ORDER BY id")]
    assert [(type(value), value) for value in stored] == [(type(value), value) for value in values]


def test_options_reach_the_library(people: People, tmp_path: Path) -> None:
    run(people.anna, "INSERT INTO tags VALUES ('sea', 'blue')", "DELETE FROM notes")
    database = buckia.Database(people.anna)
    raw = tmp_path / "tags.changeset"
    report = database.diff(people.base, raw, tables=["tags"], method="rows", raw=True)
    assert [table.name for table in report.tables] == ["tags"] and report.method == "rows"
    assert raw.read_bytes()[:1] == b"T"
    with pytest.raises(buckia.FileError) as caught:
        database.diff(people.base, raw, tables=["tags"], raw=True)
    assert caught.value.code == "alreadyExists" and caught.value.path == raw
    assert database.diff(people.base, raw, tables=["tags"], raw=True, replace=True).path == raw


def test_a_dry_run_changes_nothing(people: People) -> None:
    people.collide()
    before = people.ben.read_bytes()
    report = people.database.apply(people.inbound, dry_run=True)
    assert report.is_dry_run and [diff.conflicts for diff in report.diffs] == [1]
    assert [conflict.table for conflict in report.conflicts] == ["notes"]
    assert people.ben.read_bytes() == before and len(people.files()) == 1


def test_a_damaged_file_is_reported_and_stops_no_other(people: People) -> None:
    sent = people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    assert sent.path is not None
    bad = people.folder / "bad.bdiff"
    bad.write_bytes(sent.path.read_bytes()[:-20])
    report = people.database.apply(bad, sent.path)
    assert [diff.path for diff in report.rejected] == [bad]
    assert report.rejected[0].reason and report.rejected[0].code
    assert people.title() == "Ship"


def test_a_snapshot_is_what_the_next_diff_starts_from(people: People) -> None:
    people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    snapshot = people.folder / "shared.sqlite"
    assert people.database.apply(people.inbound, snapshot=snapshot).snapshot == snapshot
    run(people.ben, "INSERT INTO tags VALUES ('sea', 'blue')")
    report = people.database.diff(snapshot, people.folder / "outbox")
    assert [(table.name, table.inserted) for table in report.tables] == [("tags", 1)]


def test_progress_is_told_and_can_stop_a_call(people: People) -> None:
    told: list[buckia.Progress] = []
    people.send("UPDATE notes SET title = 'Ship' WHERE id = 1", progress=told.append)
    assert told and {now.activity for now in told} == {"comparing"}

    class Stop(Exception):
        pass

    stop = Stop("enough")

    def tell(now: buckia.Progress) -> None:
        raise stop

    with pytest.raises(Stop) as caught:
        people.database.apply(people.inbound, progress=tell)
    assert caught.value is stop
    assert people.title() == "Boat"


def test_an_interrupt_from_the_keyboard_stops_a_call(people: People) -> None:
    people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")

    def tell(now: buckia.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        people.database.apply(people.inbound, progress=tell)
    assert people.title() == "Boat"


@pytest.mark.parametrize("delay", [0.02, 0.05, 0.1])
def test_an_interrupt_that_comes_meanwhile_stops_a_call(people: People, delay: float) -> None:
    insert = "WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)"
    people.send(f"INSERT INTO notes (id, title) {insert} SELECT i, 'Note ' || i FROM n")
    handler = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        people.database.apply(people.inbound)
    timer.join()
    assert signal.getsignal(signal.SIGINT) is handler
    assert len(rows(people.ben)) == 2 and len(people.files()) == 1


def interrupted(call: Callable[[], object]) -> float:
    """Interrupts a call, which must not end by itself before, and returns how long it ran on."""
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.05, interrupt)
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        call()
    timer.join()
    return time.monotonic() - sent[0]


def test_an_interrupt_stops_calls_without_progress(people: People, tmp_path: Path) -> None:
    insert = "WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
    people.database.init()
    run(people.ben, f"INSERT INTO notes (id, title) {insert} SELECT i, 'Mine ' || i FROM n")
    people.send(f"INSERT INTO notes (id, title) {insert} SELECT i, 'Note ' || i FROM n")
    people.database.apply(people.inbound)
    count = len(people.database.conflicts())
    assert count == 59991
    assert interrupted(lambda: people.database.resolve(range(1, count + 1), "incoming")) < 1
    assert all(conflict.status == "open" for conflict in people.database.conflicts(newest=10))
    merge = partial(people.database.merge, people.anna, output=tmp_path / "merged.sqlite", unrelated=True)
    assert interrupted(merge) < 1
    assert not (tmp_path / "merged.sqlite").exists()


def test_columns_are_ignored(people: People) -> None:
    people.send("UPDATE notes SET title = 'Ship', body = 'new' WHERE id = 1")
    people.database.apply(people.inbound, ignore={"notes": ["title", "edited"]}, match={"notes": ["title"]})
    assert (people.note()["title"], people.note()["body"]) == ("Boat", "new")
    merged = people.database.merge(people.anna, people.base, ignore={"notes": ["title"]}, dry_run=True)
    assert (merged.is_clean, merged.updated) == (True, 0)
    people.send("UPDATE notes SET title = 'Dinghy' WHERE id = 2")
    with pytest.raises(buckia.Error, match="notes.nothing"):
        people.database.apply(people.inbound, ignore={"notes": ["nothing"]})


def test_some_rows_are_shared(people: People, tmp_path: Path) -> None:
    scope = {
        "format": 1,
        "tables": [{"table": "notes", "where": "id = :id", "parameters": {"id": 2}, "omit": ["body"]}],
    }
    database = buckia.Database(people.anna)
    preview = database.share(scope, "ben", people.inbound, unencrypted=True, dry_run=True)
    assert preview.is_dry_run and [row.key for row in preview.tables[0].changes] == [[2]]
    assert not people.inbound.exists()

    sent = database.share(scope, ["ben"], people.inbound, unencrypted=True)
    assert sent.is_snapshot and sent.files[0].recipients == ["ben"]
    assert "body" not in sent.tables[0].columns
    assert database.share(None, ["ben"], people.inbound, unencrypted=True).path is None

    fresh = tmp_path / "fresh.sqlite"
    buckia.Database(fresh).init()
    report = buckia.Database(fresh).apply(people.inbound)
    assert [diff.inserted for diff in report.applied] == [1]
    assert rows(fresh) == [(2, "Radio")]


def test_a_share_needs_an_identity_unless_it_is_to_be_read_by_all(people: People) -> None:
    scope = {"format": 1, "tables": [{"table": "notes"}]}
    with pytest.raises(buckia.IdentityError):
        buckia.Database(people.anna).share(scope, ["ben"], people.inbound)
    assert not people.inbound.exists()
