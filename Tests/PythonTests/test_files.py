"""Reading, checking and rewriting files without a database."""

import gc
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest import People, rows, run

import buckia

EDITS = (
    "INSERT INTO notes VALUES (3, 'Harbour', NULL, 30)",
    "UPDATE notes SET title = 'Ship' WHERE id = 1",
    "DELETE FROM tags",
)


def test_the_changes_of_a_file_are_read_one_after_the_other(people: People) -> None:
    sent = people.send(*EDITS)
    assert sent.path is not None
    with buckia.changes(sent.path) as changes:
        assert changes.manifest is not None and changes.manifest["id"] == sent.id
        found = {(change.table, change.operation): change for change in changes}
    inserted = found["notes", "insert"]
    assert inserted.key == {"id": 3} and inserted.old is None
    assert inserted.new == {"id": 3, "title": "Harbour", "body": None, "edited": 30}
    updated = found["notes", "update"]
    assert updated.key == {"id": 1} and not updated.is_indirect
    assert updated.old is not None and updated.old["title"] == "Boat"
    assert updated.new is not None and updated.new["title"] == "Ship" and "body" not in updated.new
    deleted = found["tags", "delete"]
    assert deleted.old == {"name": "harbour", "color": "red"} and deleted.new is None


def test_a_changeset_of_sqlite_can_be_read_from_its_bytes(people: People, tmp_path: Path) -> None:
    run(people.anna, *EDITS)
    raw = tmp_path / "edits.changeset"
    buckia.Database(people.anna).diff(people.base, raw, raw=True)
    changes = buckia.changes(raw.read_bytes())
    assert changes.manifest is None
    assert [change.new for change in changes if change.operation == "insert"] == [
        {"column 1": 3, "column 2": "Harbour", "column 3": None, "column 4": 30}
    ]
    assert list(changes) == []


def test_reading_can_end_before_the_last_change(people: People) -> None:
    sent = people.send(*EDITS)
    assert sent.path is not None
    changes = buckia.changes(sent.path)
    next(changes)
    changes.close()
    changes.close()
    assert list(changes) == []
    unread = buckia.changes(sent.path)
    del unread
    gc.collect()


def test_long_values_are_read_whole(people: People) -> None:
    text, blob = "Nautilus " * 1_200_000, bytes(range(256)) * 40_000
    with closing(sqlite3.connect(people.anna)) as connection, connection:
        connection.execute("INSERT INTO notes VALUES (3, ?, ?, 30)", (text, blob))
    sent = people.send()
    assert sent.path is not None
    [change] = buckia.changes(sent.path)
    assert change.new == {"id": 3, "title": text, "body": blob, "edited": 30}


def test_a_file_is_checked_before_its_first_change_is_given(people: People) -> None:
    sent = people.send(*EDITS)
    assert sent.path is not None
    content = bytearray(sent.path.read_bytes())
    content[len(content) // 2] ^= 1
    with pytest.raises(buckia.FileError) as caught:
        buckia.changes(bytes(content))
    assert caught.value.code and caught.value.message
    with pytest.raises(buckia.FileError) as caught:
        buckia.changes(people.folder / "missing.bdiff")
    assert caught.value.code == "no-such-file" and caught.value.path == people.folder / "missing.bdiff"


def test_verify_says_what_is_wrong_with_each_file(people: People) -> None:
    sent = people.send(*EDITS)
    assert sent.path is not None
    bad = people.folder / "bad.bdiff"
    bad.write_bytes(sent.path.read_bytes()[:-20])
    report = buckia.verify(bad, people.inbound)
    assert not report.is_good
    files = {file.path: file for file in report.files}
    good = files.pop(sent.path)
    assert (good.id, good.is_good, good.signature, good.reason) == (sent.id, True, "none", None)
    [refused] = files.values()
    assert (refused.path, refused.id, refused.is_good, refused.signature) == (bad, None, False, "unknown")
    assert refused.reason
    assert buckia.verify(people.inbound).is_good


def test_the_inverse_of_a_file_undoes_it(people: People) -> None:
    sent = people.send(*EDITS)
    assert sent.path is not None
    inverse = people.folder / "inverse.bdiff"
    report = buckia.invert(sent.path, inverse)
    assert report.path == inverse
    assert {table.name: (table.inserted, table.updated, table.deleted) for table in report.tables} == {
        "notes": (0, 1, 1),
        "tags": (1, 0, 0),
    }
    people.database.apply(sent.path)
    people.database.apply(inverse)
    assert rows(people.ben) == rows(people.base)
    with pytest.raises(buckia.FileError) as caught:
        buckia.invert(sent.path, inverse)
    assert caught.value.code == "alreadyExists"
    assert buckia.invert(sent.path, inverse, replace=True).path == inverse


def test_files_are_joined_so_that_each_row_is_changed_once(people: People) -> None:
    first = people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    middle = people.folder / "middle.sqlite"
    shutil.copy(people.anna, middle)
    run(people.anna, "UPDATE notes SET title = 'Yacht' WHERE id = 1")
    second = buckia.Database(people.anna).diff(middle, people.inbound)
    assert first.path is not None and second.path is not None
    both = people.folder / "both.bdiff"
    report = buckia.concat([first.path, second.path], both)
    assert [(table.name, table.updated) for table in report.tables] == [("notes", 1)]
    [change] = buckia.changes(both)
    assert change.old is not None and change.new is not None
    assert (change.old["title"], change.new["title"]) == ("Boat", "Yacht")
