"""That a backup store can be restored without Buckia, as Schemas/backups.md describes it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from test_reader import command

PROGRAM = Path(__file__).with_name("restore_backup.py")

pytestmark = pytest.mark.skipif(shutil.which("zstd") is None, reason="the command zstd is missing")


def test_restore(tmp_path: Path) -> None:
    database, store = tmp_path / "notes.sqlite", tmp_path / "store"
    for number in range(5):
        with sqlite3.connect(database) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS notes(id INTEGER PRIMARY KEY, text)")
            connection.executemany("INSERT INTO notes(text) VALUES (?)", [(os.urandom(200),) for _ in range(500)])
            connection.execute("DELETE FROM notes WHERE id % 7 = ?", (number,))
        connection.close()
        command("backup", database, store, "--home", tmp_path / "home")
    command("prune", store, "--keep", "last=2", "--home", tmp_path / "home")
    assert len(list(store.glob("*.backup"))) == 2
    subprocess.run([sys.executable, PROGRAM, store, tmp_path / "restored.sqlite"], check=True)
    assert (tmp_path / "restored.sqlite").read_bytes() == database.read_bytes()


def test_size() -> None:
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    assert sum(1 for line in lines if line.strip()) <= 40
