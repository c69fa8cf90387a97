"""The changes in a file, one after the other."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable, Iterator
from ctypes import POINTER, byref, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

from . import _abi
from ._abi import library
from ._arguments import path
from ._calls import Call, decoded, failure
from ._files import file_options
from ._progress import Progress
from ._values import PathLike, Row, Value, as_text, from_c

_OPERATIONS = {number: word for word, number in _abi.OPERATIONS.items()}


@dataclass(frozen=True)
class Change:
    """One change of one row."""

    table: str
    """The table."""
    operation: str
    """`insert`, `update` or `delete`."""
    key: Row
    """The row's key."""
    old: Optional[Row]
    """The row before, as far as the change tells; None for an INSERT. An UPDATE tells the key and what changes."""
    new: Optional[Row]
    """The row after; None for a DELETE. An UPDATE tells what changes."""
    is_indirect: bool
    """True if a trigger or a foreign-key action has made it."""


class Changes(Iterator[Change]):
    """The changes of a diff file or a raw changeset, read one after the other in little memory.

    The file is checked completely first. It stays open until the last change was read, :meth:`close`, or the end of a
    `with`:

        with buckia.changes("notes.bdiff") as changes:
            for change in changes:
                print(change.operation, change.table, change.key)

    One thread may use it at a time. A raw changeset has no names of columns: they are `column 1` and so on.
    """

    manifest: Optional[dict[str, Any]]
    """Who has made the file and what is in it, as it stands there; None for a raw changeset."""

    _handle: Optional[c_void_p] = None

    def __init__(self, handle: c_void_p) -> None:
        self._handle = handle
        self._present = POINTER(_abi.Change)()
        self._error = c_void_p()
        manifest = library.buckia_changes_manifest(handle)
        self.manifest = None if manifest is None else json.loads(decoded(manifest))
        self._layouts: dict[tuple[bytes, bytes], tuple[str, list[str], list[int]]] = {}

    def __iter__(self) -> Changes:
        return self

    def __next__(self) -> Change:
        if self._handle is None:
            raise StopIteration
        status = library.buckia_changes_next(self._handle, byref(self._present), byref(self._error))
        if status == _abi.ROW:
            return self._change(self._present.contents)
        self.close()
        if status == _abi.DONE:
            raise StopIteration
        try:
            raise failure(status, self._error)
        finally:
            library.buckia_error_free(self._error)

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. There are no more changes then."""
        handle, self._handle = self._handle, None
        if handle is not None:
            library.buckia_changes_close(handle)

    def _change(self, change: Any) -> Change:
        # The names are the same for all changes of a table with the same key.
        is_key = ctypes.string_at(change.is_key, change.column_count)
        layout = self._layouts.get((change.table, is_key))
        if layout is None or len(layout[1]) != change.column_count:
            columns = [decoded(change.columns[place]) for place in range(change.column_count)]
            layout = decoded(change.table), columns, [place for place, flag in enumerate(is_key) if flag]
            self._layouts[change.table, is_key] = layout
        table, columns, key_places = layout
        old = self._row(columns, change.old_values)
        new = self._row(columns, change.new_values)
        key: Row = {}
        for place in key_places:
            column = columns[place]
            version = old if old is not None and column in old else new
            if version is not None and column in version:
                key[column] = version[column]
        return Change(
            table=table,
            operation=_OPERATIONS[change.operation],
            key=key,
            old=old,
            new=new,
            is_indirect=change.indirect,
        )

    def _row(self, columns: list[str], values: Any) -> Optional[Row]:
        if not values:
            return None
        row: Row = {}
        for place, column in enumerate(columns):
            value = values[place]
            if value.type != _abi.NONE:
                is_part = value.type in (_abi.TEXT, _abi.BLOB) and value.whole_length > value.length
                row[column] = self._whole(value) if is_part else from_c(value)
        return row

    def _whole(self, value: Any) -> Value:
        """A value of which C gives only a part."""
        content = bytearray(value.whole_length)
        place = 0
        while place < len(content):
            rest = (ctypes.c_char * (len(content) - place)).from_buffer(content, place)
            count = c_size_t()
            Call().run(library.buckia_changes_read, self._handle, byref(value), place, rest, len(rest), byref(count))
            if count.value == 0:
                break
            place += count.value
        whole = bytes(content[:place])
        return as_text(whole) if value.type == _abi.TEXT else whole


def changes(
    source: Union[PathLike, bytes],
    *,
    home: Optional[PathLike] = None,
    home_passphrase: Optional[str] = None,
    identities: Iterable[PathLike] = (),
    passphrase: Optional[str] = None,
    progress: Optional[Callable[[Progress], object]] = None,
) -> Changes:
    """Reads the changes of a diff file or a raw changeset.

    Args:
        source: The file, or its bytes.
        home: The folder with the identity that opens what is encrypted for it; None for the usual one.
        home_passphrase: What opens that identity where it is protected.
        identities: Files of other identities that open encrypted files.
        passphrase: The passphrase of files that were encrypted with one.
        progress: Is told how far the file has been checked.

    Returns:
        The changes, one after the other.

    Raises:
        FileError: The file is missing, encrypted for others, or not entirely in order.
    """
    call = Call()
    options = file_options(call, home, home_passphrase, identities, passphrase, progress)
    handle = c_void_p()
    if isinstance(source, bytes):
        content = ctypes.cast(ctypes.c_char_p(source), c_void_p)
        call.run(library.buckia_changes_open_bytes, content, len(source), byref(options), byref(handle))
    else:
        call.run(library.buckia_changes_open, path(source), byref(options), byref(handle))
    return Changes(handle)
