"""A person's own files, and what a database tells of the others."""

import logging
from functools import partial
from pathlib import Path

import pytest
from conftest import People, rows, run

import buckia

SCOPE = {"format": 1, "tables": [{"table": "notes"}]}


@pytest.fixture
def homes(tmp_path: Path) -> tuple[buckia.Home, buckia.Home]:
    """The homes of Anna and Ben, who trust each other."""
    anna, ben = buckia.Home(tmp_path / "anna"), buckia.Home(tmp_path / "ben")
    for home, name, other in ((anna, "Anna", ben), (ben, "Ben", anna)):
        card = home.make_identity(name)
        assert other.add_contact(card.card).state == "seen"
        assert other.trust_contact(name, card.fingerprint).grounds == "fingerprint"
    return anna, ben


def test_contacts_are_renamed_and_removed(homes: tuple[buckia.Home, buckia.Home]) -> None:
    anna, _ = homes
    assert anna.identity().name == "Anna"
    assert anna.rename_contact("Ben", "Benjamin").name == "Benjamin"
    assert [contact.name for contact in anna.contacts()] == ["Benjamin"]
    assert anna.remove_contact("Benjamin").card.name == "Ben"
    assert anna.contacts() == []
    with pytest.raises(buckia.IdentityError):
        anna.remove_contact("Nobody")


def test_an_identity_is_made_once(tmp_path: Path) -> None:
    home = buckia.Home(tmp_path / "new")
    with pytest.raises(buckia.IdentityError):
        home.identity()
    home.make_identity("Anna")
    with pytest.raises(buckia.IdentityError):
        home.make_identity("Anna")
    assert home.rotate_identity()


def test_files_are_encrypted_for_contacts(homes: tuple[buckia.Home, buckia.Home], tmp_path: Path) -> None:
    anna, ben = homes
    plain, sealed, opened = (tmp_path / name for name in ("plain", "sealed.age", "opened"))
    plain.write_text("The boat is blue.")
    assert anna.encrypt(plain, sealed, to=["Ben"]) == sealed.stat().st_size
    with pytest.raises(buckia.FileError):
        anna.decrypt(sealed, opened)
    assert ben.decrypt(sealed, opened) == plain.stat().st_size
    assert opened.read_bytes() == plain.read_bytes()


def test_an_invitation_is_accepted(people: People, tmp_path: Path) -> None:
    buckia.Home(tmp_path / "a").make_identity("Anna")
    buckia.Home(tmp_path / "b", passphrase="secret").make_identity("Ben")
    anna = buckia.Database(people.anna, home=buckia.Home(tmp_path / "a"))
    invited = anna.invite(SCOPE, to="Ben")
    fresh = tmp_path / "fresh.sqlite"
    ben = buckia.Database(fresh, home=buckia.Home(tmp_path / "b", passphrase="secret"))
    ben.init()
    accepted = ben.accept(invited.text, tmp_path / "answers")
    assert accepted.contact is not None and accepted.contact.name == "Anna"
    assert accepted.path is not None and accepted.path.exists()
    anna.apply(tmp_path / "answers")
    assert [contact.name for contact in buckia.Home(tmp_path / "a").contacts()] == ["Ben"]
    sent = anna.share(None, ["Ben"], people.inbound)
    ben.apply(people.inbound)
    assert rows(fresh) == rows(people.anna)
    assert [share.recipients for share in anna.status().shares] == [["Ben"]]
    assert sent.path is not None and isinstance(sent.path, Path)


def test_a_snapshot_and_clocks_are_made(people: People) -> None:
    snapshot = people.folder / "sent.sqlite"
    made = people.database.snapshot(snapshot)
    assert (made.path, made.bytes, made.replaced) == (snapshot, snapshot.stat().st_size, False)
    assert people.database.snapshot(snapshot).replaced
    assert set(people.database.keep_clocks()) == {"notes", "tags"}
    assert {table.name for table in people.database.examine().replicates} >= {"notes", "tags"}


def test_databases_are_merged(people: People) -> None:
    run(people.ben, "UPDATE notes SET body = 'New' WHERE id = 2")
    run(people.anna, "UPDATE notes SET title = 'Ship' WHERE id = 1")
    tried = people.database.merge(people.anna, people.base, dry_run=True)
    assert tried.is_dry_run and people.title() == "Boat"
    people.database.merge(people.anna, people.base)
    assert people.title() == "Ship" and people.note(2)["body"] == "New"


def test_tables_and_columns_have_policies_of_their_own_in_a_merge(people: People) -> None:
    run(people.ben, "UPDATE notes SET title = 'Ours', body = 'Ours' WHERE id = 1")
    run(people.anna, "UPDATE notes SET title = 'Theirs', body = 'Theirs' WHERE id = 1")
    merge = partial(people.database.merge, people.anna, people.base)
    with pytest.raises(buckia.Error, match="there is no table \"note\""):
        merge(policies={"note": "take-incoming"})
    with pytest.raises(buckia.Error, match="notes.nothing"):
        merge(policies={("notes", "nothing"): "take-incoming"})
    merge(policies={"notes": "take-incoming", ("notes", "body"): "keep-local"})
    assert (people.title(), people.note()["body"]) == ("Theirs", "Ours")


def test_a_renamed_column_is_named_in_a_merge(people: People) -> None:
    run(people.ben, "ALTER TABLE notes ADD COLUMN text", "UPDATE notes SET text = body", "ALTER TABLE notes DROP COLUMN body")
    run(people.anna, "UPDATE notes SET body = 'Theirs' WHERE id = 1")
    with pytest.raises(buckia.Error, match="nothing"):
        people.database.merge(people.anna, people.base, rename={"notes": {"nothing": "text"}})
    people.database.merge(people.anna, people.base, rename={"notes": {"body": "text"}})
    assert rows(people.ben, "SELECT text FROM notes WHERE id = 1") == [("Theirs",)]


def test_a_person_decides_about_the_first_diff_of_a_copy(people: People, tmp_path: Path) -> None:
    for database in (people.anna, people.ben):
        run(database, *[f"INSERT INTO notes(id, title) VALUES ({number}, 'Note {number}')" for number in range(3, 20)])
    run(people.anna, "UPDATE notes SET body = 'New' WHERE id = 1")
    sent = buckia.Database(people.anna, home=tmp_path / "anna").share(SCOPE, "ben", people.inbound, unencrypted=True)
    assert sent.path is not None
    refused = people.database.apply(sent.path).diffs[0]
    assert refused.state == "rejected" and "copies" in (refused.reason or "")
    assert len(people.database.apply(sent.path, copies="same", on_conflict="take-incoming").applied) == 1
    assert people.note()["body"] == "New" and len(rows(people.ben)) == 19


def test_the_logger_says_what_became_of_files(people: People, caplog: pytest.LogCaptureFixture) -> None:
    sent = people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    assert sent.path is not None
    bad = people.folder / "bad.bdiff"
    bad.write_bytes(sent.path.read_bytes()[:-20])
    with caplog.at_level(logging.INFO, "buckia"):
        people.database.apply(people.inbound, bad)
    assert [record.levelname for record in caplog.records if ".bdiff: " in record.message] == ["INFO", "WARNING"]
