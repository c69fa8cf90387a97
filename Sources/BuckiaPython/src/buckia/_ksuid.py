"""Ids that sort by the time they were made."""

from __future__ import annotations

from ctypes import byref
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Optional

from . import _abi
from ._abi import library
from ._arguments import path, text
from ._calls import Call
from ._values import PathLike


@dataclass(frozen=True, order=True)
class KSUID:
    """An id as diff files have it. Ids sort by the time they were made, and so do their texts."""

    text: str
    """27 letters and digits, which `str` gives, too."""
    data: bytes = field(compare=False)
    """The same as 20 bytes."""
    time: datetime = field(compare=False)
    """When it was made, to the second."""

    @classmethod
    def new(cls, *, home: Optional[PathLike] = None) -> KSUID:
        """Makes a new id, greater than all that were made before.

        Args:
            home: The folder where the clock of the ids is kept; None for the usual one.
        """
        made = _abi.KSUID()
        Call().run(library.buckia_ksuid_new, path(home, "the home folder"), byref(made))
        return cls._of(made)

    @classmethod
    def parse(cls, id: str) -> KSUID:
        """Reads the text of an id.

        Raises:
            MisuseError: It is none.
        """
        read = _abi.KSUID()
        Call().run(library.buckia_ksuid_parse, text(id, "the id"), byref(read))
        return cls._of(read)

    @classmethod
    def _of(cls, id: Any) -> KSUID:
        time = datetime.fromtimestamp(id.unix_seconds, timezone.utc)
        return cls(text=id.text.decode("ascii"), data=bytes(id.bytes), time=time)

    def __str__(self) -> str:
        return self.text
