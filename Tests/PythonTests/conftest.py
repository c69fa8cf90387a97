"""What the tests share: two people with copies of one database, and a home folder of their own."""

import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Optional

import pytest

import buckia

# A background job ignores SIGINT, and so would its tests of interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

SCHEMA = """
CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT, edited INTEGER);
CREATE TABLE tags (name TEXT PRIMARY KEY, color TEXT);
INSERT INTO notes VALUES (1, 'Boat', 'The boat is blue.', 10), (2, 'Radio', NULL, 20);
INSERT INTO tags VALUES ('harbour', 'red');
"""


def run(database: Path, *statements: str) -> None:
    """Changes a database, as an app does."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def rows(database: Path, query: str = "SELECT id, title FROM notes ORDER BY id") -> list[tuple]:
    """Rows of a database."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


class People:
    """Anna and Ben, who have begun with the same database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = folder / "base.sqlite"
        self.anna = folder / "anna.sqlite"
        self.ben = folder / "ben.sqlite"
        self.inbound = folder / "inbound"
        with closing(sqlite3.connect(self.base)) as connection:
            connection.executescript(SCHEMA)
        shutil.copy(self.base, self.anna)
        shutil.copy(self.base, self.ben)

    def send(self, *statements: str, **options: Any) -> buckia.DiffReport:
        """Anna changes something and sends Ben what she has changed since the beginning."""
        run(self.anna, *statements)
        return buckia.Database(self.anna).diff(self.base, self.inbound, **options)

    def collide(self) -> None:
        """Both change the title of one note."""
        run(self.ben, "UPDATE notes SET title = 'Yacht', edited = 12 WHERE id = 1")
        self.send("UPDATE notes SET title = 'Ship', edited = 11 WHERE id = 1")

    def title(self, id: int = 1) -> Optional[str]:
        """The title of a note of Ben's."""
        return dict(rows(self.ben)).get(id)

    def files(self) -> list[str]:
        """What is in Ben's inbound folder."""
        return sorted(path.name for path in self.inbound.iterdir())

    @property
    def database(self) -> buckia.Database:
        """Ben's database."""
        return buckia.Database(self.ben)

    def note(self, id: int = 1) -> dict[str, object]:
        """A note of Ben's."""
        columns = ("id", "title", "body", "edited")
        return dict(zip(columns, rows(self.ben, f"SELECT {', '.join(columns)} FROM notes WHERE id = {id}")[0]))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing that the tests do is kept in the home of the person who runs them."""
    folder = tmp_path / "home"
    monkeypatch.setenv("BUCKIA_HOME", str(folder))
    return folder


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(tmp_path)
