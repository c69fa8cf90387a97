"""That a reader can be written from Schemas/core.md alone: one reads what the command makes."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import People, run
from reader import Change, read

import buckia

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "Tests/BuckiaFormatTests/DiffFiles/Vectors"

pytestmark = pytest.mark.skipif(shutil.which("zstd") is None, reason="the command zstd is missing")


def command(*arguments: object) -> str:
    """Runs the command that is in the wheel."""
    program = Path(buckia.__file__).with_name("command")
    if not program.exists():
        pytest.skip("this wheel has no command")
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def sent(people: People) -> Path:
    """A file with values of each type, signed by Anna."""
    run(
        people.base,
        "CREATE TABLE logs (line, other)",
        "CREATE TABLE places (name TEXT, number INTEGER, PRIMARY KEY (number, name)) WITHOUT ROWID",
        "INSERT INTO places VALUES ('harbour', 1)",
    )
    shutil.copy(people.base, people.anna)
    run(
        people.anna,
        "INSERT INTO notes VALUES (9223372036854775807, 'ü \"x\"', x'00ff', -1)",
        "UPDATE notes SET body = x'01', edited = 2.5 WHERE id = 2",
        "DELETE FROM notes WHERE id = 1",
        "INSERT INTO logs VALUES (1.0, NULL), (-0.0, '')",
        "UPDATE places SET name = 'port'",
        # A varint of three bytes.
        "UPDATE tags SET color = printf('%.20000c', 'r')",
    )
    command("identity", "new", "--name", "Anna")
    command("diff", people.base, people.anna, "-o", people.inbound, "--sign")
    [file] = people.inbound.iterdir()
    return file


def others(file: Path) -> Iterator[Change]:
    """What the library reads."""
    with buckia.changes(file) as changes:
        for change in changes:
            words = {"insert": "inserted", "update": "updated", "delete": "deleted"}
            yield Change(words[change.operation], change.table, change.old or {}, change.new or {})


def test_it_lists_the_changes_of_a_signed_file(sent: Path) -> None:
    manifest, changes = read(sent)
    assert manifest["id"] == sent.stem and "identity" in manifest["sender"]
    assert Change("deleted", "notes", {"id": 1, "title": "Boat", "body": "The boat is blue.", "edited": 10}, {}) in changes
    assert Change("updated", "notes", {"id": 2, "body": None, "edited": 20}, {"body": b"\1", "edited": 2.5}) in changes
    assert [repr(change) for change in changes] == [repr(change) for change in others(sent)]
    assert len(changes) == 8


def test_it_reads_the_vectors(tmp_path: Path) -> None:
    vectors = list(VECTORS.glob("*.bdiff"))
    assert len(vectors) > 5
    for vector in vectors:
        assert [repr(change) for change in read(vector)[1]] == [repr(change) for change in others(vector)]


def test_it_refuses_a_file_under_another_name(sent: Path) -> None:
    other = sent.with_name("0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff")
    with pytest.raises(ValueError, match="its name is not"):
        read(sent.rename(other))


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ("manifest.json", "signature is wrong"),
        ("manifest.sig", "signature is wrong"),
        ("schema.json", "digest of schema.json"),
        ("changeset", "digest of changeset"),
    ],
)
def test_it_refuses_an_altered_member(sent: Path, member: str, reason: str) -> None:
    # The frame and its checksum are made again, so that only digests and signature can tell.
    archive = bytearray(subprocess.run(["zstd", "-dcq", sent], check=True, capture_output=True).stdout)
    place = archive.index(member.encode().ljust(100, b"\0")) + 512
    # The last digit of a digest in the manifest; elsewhere any byte.
    place = archive.index(b'"}]}', place) - 1 if member == "manifest.json" else place + 5
    archive[place] = ord("0") if archive[place] != ord("0") else ord("1")
    sent.write_bytes(subprocess.run(["zstd", "-cq"], input=archive, check=True, capture_output=True).stdout)
    with pytest.raises(ValueError, match=reason):
        read(sent)


def test_it_runs_as_a_program(sent: Path) -> None:
    program = Path(__file__).with_name("reader.py")
    listed = subprocess.run([sys.executable, program, sent], check=True, capture_output=True, text=True).stdout
    assert listed.splitlines()[0].startswith(f"{sent.stem} signed by ")
    assert "updated notes {'id': 2, 'body': None, 'edited': 20} -> {'body': b'\\x01', 'edited': 2.5}" in listed


def test_it_is_short_enough_to_be_read() -> None:
    assert len(Path(__file__).with_name("reader.py").read_text(encoding="utf-8").splitlines()) <= 300
