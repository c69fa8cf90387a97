"""Working on a connection that the app has open."""

import sqlite3
import threading
from contextlib import closing

import pytest
from conftest import People, rows

import buckia
from buckia._borrowing import PythonSQLite

try:
    PythonSQLite.shared()
    OBSTACLE = None
except buckia.CannotBorrowError as error:
    OBSTACLE = str(error)

lends = pytest.mark.skipif(OBSTACLE is not None, reason=str(OBSTACLE))


@lends
def test_diffs_are_applied_in_the_apps_own_transaction(people: People) -> None:
    people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    with closing(sqlite3.connect(people.ben, isolation_level=None)) as connection:
        database = buckia.Database.borrowing(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO tags VALUES ('sea', 'blue')")
        assert database.apply(people.inbound).changed_tables == {"notes"}
        assert connection.in_transaction
        assert connection.execute("SELECT title FROM notes WHERE id = 1").fetchone() == ("Ship",)
        connection.execute("ROLLBACK")
        assert people.title() == "Boat" and len(people.files()) == 1

        connection.execute("BEGIN IMMEDIATE")
        database.apply(people.inbound)
        connection.execute("COMMIT")
        assert people.title() == "Ship" and len(people.files()) == 1
        assert [diff.state for diff in database.apply(people.inbound).diffs] == ["already-applied"]
        assert people.files() == []


@lends
def test_a_database_in_memory_can_be_borrowed(people: People) -> None:
    sent = buckia.Database(people.anna).diff(None, people.inbound)
    assert sent.path is not None
    with closing(sqlite3.connect(":memory:")) as connection:
        database = buckia.Database.borrowing(connection)
        assert database.path is None
        database.apply(sent.path)
        assert connection.execute("SELECT id, title FROM notes").fetchall() == rows(people.anna)
        assert [entry.id for entry in database.log()] == [sent.id]


@lends
def test_a_diff_of_a_borrowed_database_has_what_its_open_transaction_has_changed(people: People) -> None:
    with closing(sqlite3.connect(people.anna)) as connection:
        connection.execute("UPDATE notes SET title = 'Ship' WHERE id = 1")
        assert connection.in_transaction
        report = buckia.Database.borrowing(connection).diff(people.base, people.inbound)
        connection.rollback()
    assert [(table.name, table.updated) for table in report.tables] == [("notes", 1)]


@lends
def test_a_resolver_may_read_with_the_same_connection(people: People) -> None:
    people.collide()
    with closing(sqlite3.connect(people.ben)) as connection:

        def resolver(conflict: buckia.Conflict) -> buckia.Answer:
            [count] = connection.execute("SELECT count(*) FROM notes").fetchone()
            return {"title": f"{count} notes"}

        buckia.Database.borrowing(connection).apply(people.inbound, resolver=resolver)
    assert people.title() == "2 notes"


@lends
def test_a_resolver_cannot_use_the_connection_through_buckia(people: People) -> None:
    people.collide()
    with closing(sqlite3.connect(people.ben)) as connection:
        database = buckia.Database.borrowing(connection)
        with pytest.raises(buckia.MisuseError, match="at work"):
            database.apply(people.inbound, resolver=lambda conflict: database.log() and None)
        assert people.title() == "Yacht"
        assert database.apply(people.inbound).diffs[0].state == "applied"


@lends
def test_functions_and_collations_of_the_app_work(people: People) -> None:
    people.send("INSERT INTO notes VALUES (3, 'Harbour', NULL, 30)")
    called = []
    with closing(sqlite3.connect(people.ben)) as connection:
        connection.create_function("shout", 1, lambda text: called.append(text) or text.upper())
        connection.execute("CREATE TEMP TRIGGER heard AFTER INSERT ON notes BEGIN SELECT shout(new.title); END")
        buckia.Database.borrowing(connection).apply(people.inbound)
    assert called == ["Harbour"]


@lends
def test_another_copy_of_sqlite_is_called_through_its_table_of_functions(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Copy(PythonSQLite):
        def __init__(self) -> None:
            super().__init__()
            self._routines = self._verify()

    monkeypatch.setattr(PythonSQLite, "_instance", Copy())
    people.collide()
    with closing(sqlite3.connect(people.ben)) as connection:
        database = buckia.Database.borrowing(connection)
        assert database.apply(people.inbound, resolver=lambda conflict: "incoming").changed_tables == {"notes"}
        assert [conflict.outcome for conflict in database.conflicts()] == ["took-incoming"]
    assert people.title() == "Ship"


@lends
def test_a_subclass_of_the_connection_can_be_borrowed(people: People) -> None:
    class Connection(sqlite3.Connection):
        def cursor(self, *arguments: object) -> sqlite3.Cursor:  # type: ignore[override]
            raise AssertionError("an app's own methods are not called")

    with closing(sqlite3.connect(people.ben, factory=Connection)) as connection:
        assert buckia.Database.borrowing(connection).log() == []


@lends
def test_a_closed_connection_is_refused(people: People) -> None:
    connection = sqlite3.connect(people.ben)
    database = buckia.Database.borrowing(connection)
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.log()


@lends
def test_a_connection_that_was_never_opened_is_refused() -> None:
    class Connection(sqlite3.Connection):
        def __init__(self) -> None:
            """Does not call that of its superclass."""

    with pytest.raises(sqlite3.ProgrammingError):
        buckia.Database.borrowing(Connection()).log()


@lends
def test_a_connection_belongs_to_its_thread(people: People) -> None:
    with closing(sqlite3.connect(people.ben)) as connection:
        database = buckia.Database.borrowing(connection)
        raised = []

        def work() -> None:
            try:
                database.log()
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert [type(error) for error in raised] == [sqlite3.ProgrammingError]


@lends
def test_closing_the_connection_while_it_is_lent_is_no_crash(people: People) -> None:
    people.collide()
    connection = sqlite3.connect(people.ben)

    def resolver(conflict: buckia.Conflict) -> buckia.Answer:
        connection.close()
        return "incoming"

    with pytest.raises(buckia.Error):
        buckia.Database.borrowing(connection).apply(people.inbound, resolver=resolver)
    assert people.title() == "Yacht"


@lends
def test_nothing_can_be_shared_inside_a_transaction_of_the_app(people: People) -> None:
    scope = {"format": 1, "tables": [{"table": "notes"}]}
    with closing(sqlite3.connect(people.anna, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        with pytest.raises(buckia.MisuseError):
            buckia.Database.borrowing(connection).share(scope, ["ben"], people.inbound, unencrypted=True)


@lends
def test_many_threads_work_at_once(people: People) -> None:
    people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    failures = []

    def work() -> None:
        try:
            for _ in range(20):
                with closing(sqlite3.connect(people.ben)) as connection:
                    buckia.Database.borrowing(connection).log()
                buckia.Database(people.ben).conflicts()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    people.database.apply(people.inbound)
    for thread in threads:
        thread.join()
    assert failures == [] and people.title() == "Ship"


def test_what_is_no_connection_is_refused() -> None:
    with pytest.raises(TypeError):
        buckia.Database.borrowing("notes.sqlite")  # type: ignore[arg-type]


class ElsewhereSQLite(PythonSQLite):
    """A Python whose connections keep their handle somewhere else."""

    def _read(self, connection: sqlite3.Connection) -> int:
        return (super()._read(connection) or 0) + 8


def test_a_python_that_keeps_the_handle_elsewhere_is_refused() -> None:
    with pytest.raises(buckia.CannotBorrowError) as caught:
        ElsewhereSQLite()
    assert caught.value.code == "cannot-borrow"
    assert "buckia.Database(path)" in str(caught.value)


def test_another_implementation_of_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.implementation.name", "pypy")
    with pytest.raises(buckia.CannotBorrowError, match="pypy"):
        PythonSQLite()
