"""Backup stores from Python."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import buckia
import pytest
from conftest import rows, run


@pytest.fixture
def person(tmp_path: Path) -> buckia.Home:
    return buckia.Home(tmp_path / "home")


@pytest.fixture
def database(tmp_path: Path, person: buckia.Home) -> buckia.Database:
    path = tmp_path / "notes.sqlite"
    run(path, "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT)", "INSERT INTO notes VALUES (1, 'Boat')")
    return buckia.Database(path, home=person)


@pytest.fixture
def store(tmp_path: Path, person: buckia.Home) -> buckia.BackupStore:
    return buckia.BackupStore(tmp_path / "store", home=person)


def edit(database: buckia.Database, title: str) -> None:
    assert database.path is not None
    run(database.path, f"UPDATE notes SET title = '{title}'")


def test_points(database: buckia.Database, store: buckia.BackupStore, tmp_path: Path) -> None:
    first = store.back_up(database, note="Before the trip", drill=True)
    assert first.is_new and first.is_complete and first.fault is None and first.point.note == "Before the trip"
    assert not store.back_up(database).is_new
    edit(database, "Ship")
    assert not store.back_up(database).is_complete
    points = store.history()
    assert [point.sequence for point in points] == [1, 2] and [point.is_verified for point in points] == [True, False]
    assert store.restore(tmp_path / "old.sqlite", at=points[0].id).id == points[0].id
    assert rows(tmp_path / "old.sqlite", "SELECT title FROM notes") == [("Boat",)]
    with pytest.raises(buckia.Error, match="is there already"):
        store.restore(tmp_path / "old.sqlite")
    assert store.verify().is_good
    assert [point.id for point in store.prune("last=1", dry_run=True).removed] == [points[0].id]
    assert store.prune("last=1").kept == 1 and len(store.history()) == 1
    assert [point.id for point in store.restore_pruned()] == [points[0].id]


def test_restored_rows(database: buckia.Database, store: buckia.BackupStore) -> None:
    assert database.path is not None
    store.back_up(database)
    edit(database, "Ship")
    scope = {"format": 1, "tables": [{"table": "notes"}]}
    assert store.restore_rows(database, scope, dry_run=True).rows is not None
    assert rows(database.path, "SELECT title FROM notes") == [("Ship",)]
    assert store.restore_rows(database, scope).rows is not None
    assert rows(database.path, "SELECT title FROM notes") == [("Boat",)]
    assert store.restore_rows(database, scope).rows is None
    edit(database, "Ship")
    store.restore_into(database)
    assert rows(database.path, "SELECT title FROM notes") == [("Boat",)]
    assert [point.note for point in store.history()][-1].startswith("before ")


def test_refusals(database: buckia.Database, store: buckia.BackupStore, tmp_path: Path) -> None:
    with pytest.raises(buckia.Error, match="no such store"):
        store.history()
    with sqlite3.connect(":memory:") as connection, pytest.raises(buckia.MisuseError, match="by its path"):
        store.back_up(buckia.Database.borrowing(connection))
    store.back_up(database)
    damaged = next((tmp_path / "store").glob("*.backup"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    report = store.verify()
    assert not report.is_good and damaged.name in report.faults[0].path
    with pytest.raises(RuntimeError, match="enough"):
        store.back_up(database, progress=stop)


def stop(progress: buckia.Progress) -> None:
    raise RuntimeError("enough")
