"""The `sqlite3 *` of a `sqlite3.Connection`.

CPython keeps the handle in the connection's C structure, right behind the object's header, and has no call that gives
it. Reading it from there is only sound where it is known to be there, so SQLite itself is asked once for each process:
an extension that SQLite runs for every new connection tells the handle of a connection made for this purpose, and that
must be the very pointer that is found in the object. The same extension gives SQLite's table of functions, through
which Buckia calls the copy of SQLite that Python uses, whether or not it is the one that Buckia is linked with.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Optional

from ._abi import library
from ._errors import CannotBorrowError, MisuseError

# int xEntryPoint(sqlite3 *, char **, const sqlite3_api_routines *): https://sqlite.org/c3ref/auto_extension.html
_EntryPoint = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_listening = threading.local()


def _tell(connection: int, _message: int, routines: int) -> int:
    told = getattr(_listening, "told", None)
    if told is not None:
        told.append((connection, routines))
    return 0


# It stays: a thread that opens a connection meanwhile may call it after it was taken out of the list.
_extension = _EntryPoint(_tell)


class LentConnection(NamedTuple):
    """A connection as C sees it."""

    handle: int
    """The `sqlite3 *`."""
    routines: Optional[int]
    """The `sqlite3_api_routines *` of the copy of SQLite that made it; None for the one that Buckia is linked with."""


class PythonSQLite:
    """The copy of SQLite that Python's `sqlite3` uses, and where its connections keep their handle."""

    _instance: Optional[PythonSQLite] = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        if sys.implementation.name != "cpython":
            raise _refusal(f"{sys.implementation.name} does not keep the handle where CPython does")
        # Symbols that are looked up here are those that the module itself is linked with.
        self._library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        # The size of an object that has no fields is that of the header, in every kind of build.
        self._offset = object.__basicsize__
        if self._offset + ctypes.sizeof(ctypes.c_void_p) > sqlite3.Connection.__basicsize__:
            raise _refusal("this version of Python keeps no handle in the connection")
        try:
            self._library.sqlite3_auto_extension.argtypes = [_EntryPoint]
            self._library.sqlite3_cancel_auto_extension.argtypes = [_EntryPoint]
            self._library.sqlite3_prepare_v2.argtypes = [
                ctypes.c_void_p,
                ctypes.c_char_p,
                ctypes.c_int,
                ctypes.POINTER(ctypes.c_void_p),
                ctypes.c_void_p,
            ]
            self._library.sqlite3_finalize.argtypes = [ctypes.c_void_p]
        except AttributeError:
            raise _refusal("the functions of its SQLite cannot be reached") from None
        # The handles of connections that are lent, changed under the lock.
        self._lent: set[int] = set()
        routines = self._verify()
        is_linked_one = _address(library, "sqlite3_prepare_v2") == _address(self._library, "sqlite3_prepare_v2")
        self._routines = None if is_linked_one else routines

    @classmethod
    def shared(cls) -> PythonSQLite:
        """The one copy, which is looked for at the first use.

        Raises:
            CannotBorrowError: Handles cannot be had in this Python.
        """
        with cls._lock:
            if cls._instance is None:
                cls._instance = cls()
            return cls._instance

    def _verify(self) -> int:
        """Makes sure that the handle is where it is expected, and gives SQLite's table of functions."""
        told: list[tuple[int, int]] = []
        _listening.told = told
        if self._library.sqlite3_auto_extension(_extension) != 0:
            raise _refusal("its SQLite does not tell the handles of new connections")
        try:
            connection = sqlite3.connect(":memory:")
        finally:
            self._library.sqlite3_cancel_auto_extension(_extension)
            _listening.told = None
        try:
            if not told:
                raise _refusal("its SQLite is another than can be reached")
            handle, routines = told[-1]
            if not handle or not routines or self._read(connection) != handle:
                raise _refusal("this version of Python keeps the handle somewhere else")
            return routines
        finally:
            connection.close()

    def _read(self, connection: sqlite3.Connection) -> Optional[int]:
        # Sound: it lies inside the object, which is alive.
        return ctypes.c_void_p.from_address(id(connection) + self._offset).value

    @contextmanager
    def lend(self, connection: sqlite3.Connection) -> Iterator[LentConnection]:
        """Lends the handle of an open connection, to one call at a time.

        Raises:
            MisuseError: It is lent already.
            sqlite3.ProgrammingError: The connection is closed, or belongs to another thread.
        """
        # Python's own check of the connection and the thread.
        sqlite3.Connection.cursor(connection).close()
        handle = self._read(connection)
        if not handle:
            raise MisuseError("misuse", "the connection is not open")
        with self._lock:
            if handle in self._lent:
                raise MisuseError(
                    "misuse",
                    "the connection is at work: no resolver and no other thread can use it through Buckia meanwhile",
                )
            self._lent.add(handle)
        statement = ctypes.c_void_p()
        try:
            # While a statement is there, closing the connection does not free the handle.
            self._library.sqlite3_prepare_v2(handle, b"SELECT 1", -1, ctypes.byref(statement), None)
            yield LentConnection(handle, self._routines)
        finally:
            # First: once the handle is freed, another connection may have the same.
            with self._lock:
                self._lent.discard(handle)
            self._library.sqlite3_finalize(statement)


def _address(library: ctypes.CDLL, name: str) -> Optional[int]:
    """Where a function is; None where the library and those that it is linked with have none of that name."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


def _refusal(reason: str) -> CannotBorrowError:
    return CannotBorrowError(
        "cannot-borrow",
        f"connections of this Python cannot be borrowed: {reason}; "
        "close the connection and name the file instead: buckia.Database(path)",
    )
