"""The log, and taking back what a diff did."""

from datetime import datetime, timedelta, timezone

import pytest
from conftest import People, rows

import buckia


def test_the_log_has_what_has_arrived(people: People) -> None:
    assert people.database.log() == []
    sent = people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    people.database.apply(people.inbound)
    [entry] = people.database.log()
    assert (entry.id, entry.state, entry.sender, entry.sender_key) == (sent.id, "applied", "unsigned", None)
    assert (entry.inserted, entry.updated, entry.deleted, entry.conflicts) == (0, 1, 0, 0)
    assert entry.file == f"{sent.id}.bdiff" and len(entry.digest) == 64
    assert abs(datetime.now(timezone.utc) - entry.applied_at) < timedelta(hours=1)
    assert people.database.log(newest=5) == [entry] and people.database.log(newest=0) == []


def test_a_diff_is_taken_back_and_so_is_that(people: People) -> None:
    sent = people.send("UPDATE notes SET title = 'Ship' WHERE id = 1", "DELETE FROM tags")
    people.database.apply(people.inbound)
    assert sent.id is not None
    assert people.database.undo(sent.id, dry_run=True).is_dry_run
    assert people.title() == "Ship"

    report = people.database.undo(sent.id)
    [undone] = report.undone
    assert (undone.diff, undone.inserted, undone.updated) == (sent.id, 1, 1)
    assert set(undone.changed_tables) == {"notes", "tags"}
    assert rows(people.ben) == rows(people.base)
    with pytest.raises(buckia.UndoError) as caught:
        people.database.undo(sent.id)
    assert caught.value.code == "already-undone"

    people.database.undo(undone.id)
    assert people.title() == "Ship"


def test_all_that_came_unsigned_is_taken_back(people: People) -> None:
    sent = people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    people.database.apply(people.inbound)
    assert [undone.diff for undone in people.database.undo(senders=["unsigned"]).undone] == [sent.id]
    assert people.title() == "Boat"


def test_what_is_not_known_cannot_be_taken_back(people: People) -> None:
    people.send("UPDATE notes SET title = 'Ship' WHERE id = 1")
    people.database.apply(people.inbound)
    with pytest.raises(buckia.UndoError) as caught:
        people.database.undo("0ujtsYcgvSTl8PAuAdqWYSMnLOv")
    assert caught.value.code == "no-such-diff"
