"""What is raised, and of which class."""

import inspect
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest import People, run

import buckia


def test_a_missing_database_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.sqlite"
    with pytest.raises(buckia.DatabaseError) as caught:
        buckia.Database(missing).log()
    assert (caught.value.code, caught.value.path) == ("no-database", missing)
    assert str(missing) in str(caught.value)
    assert not missing.exists()


def test_what_is_no_database_is_no_database(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    other.write_text("This is no database." * 100)
    with pytest.raises(buckia.DatabaseError) as caught:
        buckia.Database(other).log()
    assert caught.value.code == "sqlite-26"


def test_a_locked_database_is_busy(people: People) -> None:
    people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    with closing(sqlite3.connect(people.ben, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(buckia.BusyError) as caught:
            buckia.Database(people.ben, timeout=0).apply(people.inbound)
    assert caught.value.code == "busy"
    assert people.title() == "Boat"


def test_databases_that_share_no_table_are_not_compared(people: People, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    run(other, "CREATE TABLE cities (name TEXT PRIMARY KEY)")
    with pytest.raises(buckia.DatabaseError) as caught:
        buckia.Database(people.anna).diff(other, people.inbound)
    assert caught.value.code == "nothing-in-common"
    assert buckia.Database(people.anna).diff(other, people.inbound, unrelated=True).path


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda database: database.apply("inbound", on_conflict="mine"), "'keep-local'"),
        (lambda database: database.apply("inbound", schema="loose"), "'additive'"),
        (lambda database: database.apply("inbound", trust="all"), "'known'"),
        (lambda database: database.diff("base", "outbox", method="magic"), "'pages'"),
        (lambda database: database.conflicts(kind="bad"), "'foreign-key'"),
        (lambda database: database.resolve(1, "theirs"), "'incoming'"),
        (lambda database: database.log(newest=-1), "negative"),
        (lambda database: database.diff("base\0", "outbox"), "null character"),
    ],
)
def test_words_that_mean_nothing_are_refused_by_name(people: People, call: object, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        call(people.database)  # type: ignore[operator]


@pytest.mark.parametrize(
    "call",
    [
        lambda database: database.resolve(2**64 + 1, "local"),
        lambda database: database.resolve([1, -(2**63) - 1], "local"),
        lambda database: database.forget_rule(2**64 + 1),
        lambda database: database.apply("inbound", memory=2**63),
        lambda database: database.conflicts(newest=2**64),
        lambda database: database.log(newest=2**63),
    ],
)
def test_numbers_that_do_not_fit_64_bits_are_refused_and_not_cut_off(people: People, call: object) -> None:
    with pytest.raises(OverflowError, match="64 bits"):
        call(people.database)  # type: ignore[operator]


def test_a_timeout_may_be_without_an_end(people: People) -> None:
    assert buckia.Database(people.ben, timeout=float("inf")).log() == []


def test_one_text_in_the_place_of_several_is_refused(people: People) -> None:
    with pytest.raises(TypeError, match="put it into a list"):
        people.database.diff(people.base, people.inbound, tables="notes")


def test_errors_can_be_sent_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(buckia.BusyError("busy", "it is locked", Path("notes.sqlite"))))
    assert type(error) is buckia.BusyError
    assert (error.code, error.message, error.path, error.offset) == ("busy", "it is locked", Path("notes.sqlite"), None)
    assert str(error) == "notes.sqlite: it is locked"


def test_every_error_is_a_buckia_error() -> None:
    errors = [value for value in vars(buckia).values() if inspect.isclass(value) and issubclass(value, Exception)]
    assert len(errors) >= 9
    assert all(issubclass(error, buckia.Error) for error in errors)
