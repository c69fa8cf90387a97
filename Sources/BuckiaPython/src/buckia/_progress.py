"""How far a call has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _abi

_ACTIVITIES = {number: word for word, number in _abi.ACTIVITIES.items()}


@dataclass(frozen=True)
class Progress:
    """How far a call has come. What does not fit the activity is 0."""

    activity: str
    """`comparing`, `verifying`, `applying`, `rewriting`, or `working` of a call that counts nothing."""
    subject: str
    """The table that is compared, or the file that is worked on; empty where it is neither."""
    files: int
    """How many files are done."""
    file_count: int
    """How many files there are."""
    rows: int
    """How many rows of the present table have been compared, or changes of the present file applied or rewritten."""
    bytes: int
    """How many bytes have been read, or belong to files that are done."""
    byte_count: int
    """How many bytes there are."""

    @classmethod
    def _of(cls, progress: Any) -> Progress:
        return cls(
            activity=_ACTIVITIES.get(progress.activity, ""),
            subject=(progress.subject or b"").decode("utf-8", "surrogateescape"),
            files=progress.files,
            file_count=progress.file_count,
            rows=progress.rows,
            bytes=progress.bytes,
            byte_count=progress.byte_count,
        )
