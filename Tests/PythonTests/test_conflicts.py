"""Resolvers, recorded conflicts, rules."""

import pytest
from conftest import People, rows, run

import buckia


def test_a_resolver_sees_three_versions_of_the_row(people: People) -> None:
    people.collide()
    seen = []

    def resolver(conflict: buckia.Conflict) -> buckia.Answer:
        seen.append(conflict)
        return None

    people.database.apply(people.inbound, resolver=resolver)
    [conflict] = seen
    assert (conflict.table, conflict.kind, conflict.operation) == ("notes", "data", "update")
    assert conflict.key == {"id": 1} and conflict.key_columns == ["id"]
    assert conflict.columns == ["id", "title", "body", "edited"]
    assert conflict.base == {"id": 1, "title": "Boat", "edited": 10}
    assert conflict.local == {"id": 1, "title": "Yacht", "body": "The boat is blue.", "edited": 12}
    assert conflict.incoming is not None
    assert {column: conflict.incoming[column] for column in ("title", "edited")} == {"title": "Ship", "edited": 11}
    assert conflict.violations == 0


@pytest.mark.parametrize(
    "answer, title, outcome",
    [
        ("local", "Yacht", "kept-local"),
        ("incoming", "Ship", "took-incoming"),
        ({"title": "Ship / Yacht"}, "Ship / Yacht", "resolved"),
        (None, "Yacht", "kept-local"),
    ],
)
def test_the_answer_decides(people: People, answer: buckia.Answer, title: str, outcome: str) -> None:
    people.collide()
    report = people.database.apply(people.inbound, resolver=lambda conflict: answer)
    assert report.diffs[0].conflicts == 1
    assert people.title() == title
    assert [conflict.outcome for conflict in people.database.conflicts()] == [outcome]


@pytest.mark.parametrize(
    "value",
    [None, b"\0\xff", b"", 2**63 - 1, -(2**63), 0.5, "a\0b", "", True, bytearray(b"x"), memoryview(b"y")],
)
def test_a_resolver_can_write_every_kind_of_value(people: People, value: object) -> None:
    for database in (people.base, people.anna, people.ben):
        run(database, "ALTER TABLE notes ADD COLUMN extra")
    people.collide()
    people.database.apply(people.inbound, resolver=lambda conflict: {"extra": value})  # type: ignore[dict-item]
    expected = bytes(value) if isinstance(value, (bytearray, memoryview)) else value
    [(stored,)] = rows(people.ben, "SELECT extra FROM notes WHERE id = 1")
    assert stored == expected and isinstance(expected, type(stored))


def test_abort_refuses_the_whole_diff(people: People) -> None:
    people.collide()
    report = people.database.apply(people.inbound, resolver=lambda conflict: "abort")
    assert [(diff.state, diff.code) for diff in report.diffs] == [("rejected", "conflict")]
    assert people.title() == "Yacht"


def test_what_a_resolver_raises_comes_out_unchanged(people: People) -> None:
    people.collide()
    raised = LookupError("unknown")

    def resolver(conflict: buckia.Conflict) -> buckia.Answer:
        raise raised

    with pytest.raises(LookupError) as caught:
        people.database.apply(people.inbound, resolver=resolver)
    assert caught.value is raised
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert people.title() == "Yacht" and people.database.conflicts() == []
    assert len(people.files()) == 1
    # The next call is as if that had never been.
    assert people.database.apply(people.inbound).diffs[0].state == "applied"


def test_files_beside_the_one_that_a_resolver_has_stopped_at_are_applied_by_the_next_call(people: People) -> None:
    people.send("INSERT INTO tags VALUES ('sea', 'blue')")
    people.collide()

    def resolver(conflict: buckia.Conflict) -> buckia.Answer:
        raise LookupError("unknown")

    with pytest.raises(LookupError):
        people.database.apply(people.inbound, resolver=resolver)
    assert people.title() == "Yacht"
    people.database.apply(people.inbound)
    assert [entry.state for entry in people.database.log()] == ["applied", "applied"]
    assert rows(people.ben, "SELECT count(*) FROM tags") == [(2,)] and people.files() == []


@pytest.mark.parametrize(
    "answer, error",
    [("theirs", ValueError), (7, TypeError), ({"title": object()}, TypeError), ({"edited": 2**63}, OverflowError)],
)
def test_an_answer_that_is_none_is_an_error(people: People, answer: object, error: type) -> None:
    people.collide()
    with pytest.raises(error):
        people.database.apply(people.inbound, resolver=lambda conflict: answer)  # type: ignore[arg-type, return-value]
    assert people.title() == "Yacht"


def test_policies_are_of_tables_and_columns(people: People) -> None:
    people.collide()
    report = people.database.apply(people.inbound, policies={("notes", "title"): "take-incoming", "tags": "abort"})
    assert report.diffs[0].state == "applied"
    assert people.note()["title"] == "Ship" and people.note()["edited"] == 12


def test_a_recorded_conflict_has_all_versions(people: People) -> None:
    people.collide()
    people.database.apply(people.inbound)
    [conflict] = people.database.conflicts()
    assert (conflict.table, conflict.key, conflict.kind) == ("notes", {"id": 1}, "data")
    assert conflict.local is not None and conflict.local["title"] == "Yacht"
    assert conflict.incoming is not None and conflict.incoming["title"] == "Ship"
    assert conflict.status == "open" and conflict.resolution is None
    assert people.database.conflicts(table="tags") == []
    assert people.database.conflicts(kind="data", diff=conflict.diff, open=True, newest=1) == [conflict]
    assert people.database.conflicts(newest=0) == []


def test_a_recorded_conflict_is_resolved_later_any_number_of_times(people: People) -> None:
    people.collide()
    people.database.apply(people.inbound)
    [conflict] = people.database.conflicts()
    report = people.database.resolve(conflict.id, "incoming", decided_by="Ben")
    assert report.changed_tables == ["notes"]
    assert [(one.id, one.is_resolved, one.has_changed) for one in report.resolved] == [(conflict.id, True, True)]
    assert people.title() == "Ship"
    people.database.resolve([conflict.id], {"title": "Both"})
    assert people.title() == "Both"
    [decided] = people.database.conflicts()
    assert decided.status == "resolved" and decided.resolution is not None
    assert (decided.resolution.answer, decided.resolution.decided_by) == ("values", "")
    assert decided.resolution.before is not None and decided.resolution.before["title"] == "Ship"
    assert decided.resolution.decided_at.tzinfo is not None


def test_a_row_that_was_changed_since_is_not_overwritten(people: People) -> None:
    people.collide()
    people.database.apply(people.inbound)
    run(people.ben, "UPDATE notes SET title = 'Dinghy' WHERE id = 1")
    [conflict] = people.database.conflicts()
    report = people.database.resolve(conflict.id, "incoming")
    [refused] = report.refused
    assert refused.code == "row-changed" and refused.reason
    assert [(one.column, one.known, one.present) for one in refused.differences] == [("title", "Yacht", "Dinghy")]
    assert people.title() == "Dinghy"
    assert people.database.resolve(conflict.id, "incoming", force=True).refused == []
    assert people.title() == "Ship"


def test_an_answer_can_be_kept_as_a_rule(people: People) -> None:
    people.collide()
    people.database.apply(people.inbound)
    [conflict] = people.database.conflicts()
    people.database.resolve(conflict.id, "incoming", decided_by="Ben", remember=True)
    [rule] = people.database.rules()
    assert (rule.table, rule.kind, rule.answer, rule.decided_by) == ("notes", "data", "incoming", "Ben")
    people.database.forget_rule(rule.id)
    assert people.database.rules() == []
    with pytest.raises(buckia.ConflictError) as caught:
        people.database.forget_rule(rule.id)
    assert caught.value.code == "no-such-rule"


def test_a_conflict_of_a_constraint_says_which(people: People) -> None:
    for database in (people.base, people.anna, people.ben):
        run(database, "CREATE UNIQUE INDEX colors ON tags (color)")
    run(people.ben, "INSERT INTO tags VALUES ('sea', 'blue')")
    people.send("INSERT INTO tags VALUES ('sky', 'blue')")
    people.database.apply(people.inbound)
    [conflict] = people.database.conflicts()
    assert (conflict.kind, conflict.outcome) == ("constraint", "omitted")
    assert conflict.reason and conflict.constraint and conflict.others == [{"name": "sea"}]
    assert rows(people.ben, "SELECT name FROM tags ORDER BY name") == [("harbour",), ("sea",)]
