"""The samples of the documents, and that they are these."""

import inspect
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conftest import People, rows, run
from test_borrowing import lends

import buckia

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "Sources/Buckia/Buckia.docc/UsingFromPython.md", ROOT / "Sources/BuckiaPython/README.md"]


def exchange(before: Path, now: Path, outbox: Path, notes: Path, inbound: Path) -> None:
    # Send what changed between two copies of a database.
    sent = buckia.Database(now).diff(before, outbox)
    print(sent.path or "nothing has changed")

    # Apply everything in a folder, each file exactly once.
    database = buckia.Database(notes)
    report = database.apply(inbound, policies={"tags": "take-incoming"})
    for diff in report.rejected:
        print(diff.path, diff.reason)

    # Look back: what met a local change, and what arrived.
    for conflict in database.conflicts():
        print(conflict.table, conflict.outcome)
    for entry in database.log():
        print(entry.file, entry.state)


def test_databases_are_exchanged(people: People, capsys: pytest.CaptureFixture) -> None:
    run(people.ben, "UPDATE tags SET color = 'blue'")
    run(people.anna, "UPDATE tags SET color = 'green'")
    exchange(people.base, people.anna, people.inbound, people.ben, people.inbound)
    [path, conflict, entry] = capsys.readouterr().out.splitlines()
    assert conflict == "tags took-incoming" and entry == f"{Path(path).name} applied"
    assert rows(people.ben, "SELECT color FROM tags") == [("green",)]


def decide(database: buckia.Database, inbound: Path) -> None:
    def later_edit(conflict):
        if conflict.table != "notes" or conflict.kind != "data":
            return None
        # The later edit wins.
        return "incoming" if conflict.incoming["edited"] > conflict.local["edited"] else "local"

    database.apply(inbound, resolver=later_edit)


def decide_later(database: buckia.Database) -> None:
    for conflict in database.conflicts(table="notes", open=True):
        report = database.resolve(conflict.id, {"title": "Both"}, decided_by="Ben")
        for refused in report.refused:
            print(refused.id, refused.reason)


def test_the_later_edit_wins_until_somebody_decides(people: People) -> None:
    people.collide()
    decide(people.database, people.inbound)
    assert people.title() == "Yacht"
    decide_later(people.database)
    assert people.title() == "Both"
    assert people.database.conflicts(open=True) == []


def borrow(connection: sqlite3.Connection, inbound: Path) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE state SET checked = datetime()")
        changed = buckia.Database.borrowing(connection).apply(inbound).changed_tables
    assert changed == {"notes"}


@lends
def test_files_are_applied_in_the_apps_transaction(people: People) -> None:
    people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    run(people.ben, "CREATE TABLE state (checked TEXT)", "INSERT INTO state VALUES (NULL)")
    with closing(sqlite3.connect(people.ben)) as connection:
        borrow(connection, people.inbound)
        assert not connection.in_transaction
    assert people.title() == "Ship"
    assert rows(people.ben, "SELECT checked IS NULL FROM state") == [(0,)]


def meet(card: str, fingerprint: str) -> None:
    home = buckia.Home()
    print(home.make_identity("Anna").card)
    home.add_contact(card)
    home.trust_contact("Ben", fingerprint)


def test_people_meet(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    ben = buckia.Home(tmp_path / "ben").make_identity("Ben")
    meet(ben.card, ben.fingerprint)
    assert capsys.readouterr().out.strip() == buckia.Home().identity().card


def stand(database: buckia.Database) -> None:
    status = database.status()
    for share in status.shares:
        print(share.recipients, share.scope_tables)


def test_a_database_says_where_it_stands(people: People) -> None:
    stand(people.database)


def back_up(notes: Path, folder: Path, restored: Path) -> None:
    store = buckia.BackupStore(folder)
    store.back_up(buckia.Database(notes), keep="hourly=24,daily=30", drill=True)
    for point in store.history():
        print(point.id, point.time, point.note or "")
    store.restore(restored, at=store.history()[0].id)


def test_a_database_is_backed_up(people: People, tmp_path: Path) -> None:
    back_up(people.ben, tmp_path / "store", tmp_path / "restored.sqlite")
    assert (tmp_path / "restored.sqlite").read_bytes() == people.ben.read_bytes()


def look(file: Path) -> None:
    with buckia.changes(file) as changes:
        for change in changes:
            print(change.operation, change.table, change.key)


def test_a_file_is_looked_into(people: People, capsys: pytest.CaptureFixture) -> None:
    sent = people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    assert sent.path is not None
    look(sent.path)
    assert capsys.readouterr().out == "update notes {'id': 1}\n"


def handle(database: buckia.Database, inbound: Path) -> None:
    try:
        database.apply(inbound)
    except buckia.BusyError:
        print("another program writes to the database; try again later")
    except buckia.DatabaseError as error:
        print(error.path, error.code)


def test_errors_are_told_apart(people: People, capsys: pytest.CaptureFixture) -> None:
    people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    with closing(sqlite3.connect(people.ben, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        handle(buckia.Database(people.ben, timeout=0), people.inbound)
    handle(buckia.Database("/missing/notes.sqlite"), people.inbound)
    assert capsys.readouterr().out.splitlines() == [
        "another program writes to the database; try again later",
        "/missing/notes.sqlite no-database",
    ]


def samples() -> Iterator[tuple[str, list[str]]]:
    """The samples of the documents, without the spaces before and behind each line, and without imports."""
    for document in DOCUMENTS:
        block: list[str] = []
        is_inside = False
        for line in (line.strip() for line in document.read_text(encoding="utf-8").splitlines()):
            if line.startswith("```"):
                if is_inside and block:
                    yield document.name, block
                is_inside, block = line == "```python", []
            elif is_inside and line and not line.startswith("import "):
                block.append(line)


def test_every_sample_is_part_of_these_tests() -> None:
    source = [line.strip() for line in inspect.getsource(sys.modules[__name__]).splitlines() if line.strip()]
    found = list(samples())
    assert len(found) >= 7
    for document, sample in found:
        places = [place for place, line in enumerate(source) if line == sample[0]]
        assert any(source[place : place + len(sample)] == sample for place in places), (document, sample)
