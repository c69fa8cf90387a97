"""Ids."""

from datetime import datetime, timezone

import pytest

import buckia


def test_new_ids_ascend() -> None:
    ids = [buckia.KSUID.new() for _ in range(20)]
    assert ids == sorted(ids) and len(set(ids)) == 20
    assert [id.data for id in ids] == sorted(id.data for id in ids)


def test_the_text_of_an_id_is_read() -> None:
    # The example of https://github.com/segmentio/ksuid.
    id = buckia.KSUID.parse("0ujtsYcgvSTl8PAuAdqWYSMnLOv")
    assert id.time == datetime(2017, 10, 10, 4, 0, 47, tzinfo=timezone.utc)
    assert id.data.hex().upper() == "0669F7EFB5A1CD34B5F99D1154FB6853345C9735"
    assert str(id) == id.text == "0ujtsYcgvSTl8PAuAdqWYSMnLOv"
    assert buckia.KSUID.parse(str(id)) == id


@pytest.mark.parametrize(
    "text", ["", "0ujtsYcgvSTl8PAuAdqWYSMnLO", "zzzzzzzzzzzzzzzzzzzzzzzzzzz", "not an id at all, is it ya?"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(buckia.MisuseError):
        buckia.KSUID.parse(text)
