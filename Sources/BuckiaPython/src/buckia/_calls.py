"""Calls of the C library: text and values in and out, errors as exceptions, callbacks that may raise."""

from __future__ import annotations

import ctypes
import json
import logging
import signal
import threading
from ctypes import byref, c_void_p
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from . import _abi
from ._abi import library
from ._errors import Error, MisuseError, error_class
from ._progress import Progress

T = TypeVar("T")

logger = logging.getLogger("buckia")
logger.addHandler(logging.NullHandler())

Function = Callable[..., int]


def decoded(value: Optional[bytes]) -> str:
    """Text that C has given."""
    return (value or b"").decode("utf-8", "surrogateescape")


def taken(pointer: c_void_p) -> Optional[str]:
    """Text that C has given away, which is freed."""
    if not pointer.value:
        return None
    try:
        return decoded(ctypes.string_at(pointer.value))
    finally:
        library.buckia_free(pointer)


class Call:
    """One call of a function, and the Python functions that it calls meanwhile.

    What one of these raises stops the call as soon as possible and comes out of it unchanged, `KeyboardInterrupt`
    included.
    """

    def __init__(self) -> None:
        self._raised: Optional[BaseException] = None

    def guarded(self, body: Callable[..., int], failed: int) -> Callable[..., int]:
        """A function for C to call.

        Args:
            body: What it does.
            failed: What it answers when that has raised something.
        """

        def call(*arguments: Any) -> int:
            if self._raised is None:
                try:
                    return body(*arguments)
                except BaseException as error:  # Nothing may go up through C: it is raised afterwards.
                    self._raised = error
            return failed

        return call

    def progress(self, tell: Optional[Callable[[Progress], object]]) -> Any:
        """What is told how far the call has come.

        There is one even where it is not asked for: Python handles an interrupt from the keyboard while it runs.
        """

        def report(_context: object, progress: Any) -> int:
            if tell is not None:
                tell(Progress._of(progress.contents))
            return 0

        return _abi.ProgressCallback(self.guarded(report, 1))

    def _catch_interrupts(self) -> Any:
        """Lets an interrupt from the keyboard stop the call.

        What a signal's handler raises while a callback begins or ends, ctypes would print and forget. So what it raises
        is kept, and raised when the call has stopped.

        Returns:
            The handler to put back; None where none was changed.
        """
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler) or threading.current_thread() is not threading.main_thread():
            return None

        def keep(number: int, frame: Any) -> None:
            try:
                handler(number, frame)
            except BaseException as error:
                self._raised = self._raised or error

        try:
            signal.signal(signal.SIGINT, keep)
        except ValueError:  # Not the main interpreter.
            return None
        return handler

    def items(self, read: Callable[[Any], T], found: list[T]) -> Any:
        """What takes a list, item by item."""

        def take(_context: object, item: bytes) -> int:
            found.append(read(json.loads(decoded(item))))
            return 0

        return _abi.ItemCallback(self.guarded(take, 1))

    def run(self, function: Function, *arguments: Any) -> None:
        """Calls a function whose last parameter is an error.

        Raises:
            Error: It has failed. Whatever a callback has raised.
        """
        self.result(function, *arguments)

    def document(self, function: Function, *arguments: Any) -> Any:
        """Calls a function whose last two parameters are a JSON document and an error.

        Returns:
            The document.

        Raises:
            Error: It has failed. Whatever a callback has raised.
        """
        document, error = self.outcome(function, *arguments)
        if error is not None:
            raise error
        log(document)
        return document

    def command(
        self, database: Optional[c_void_p], name: str, arguments: dict[str, Any], options: Any = None
    ) -> Any:
        """Does what a command does that has no function of its own, and returns its document.

        Raises:
            Error: It has failed. Whatever a callback has raised.
        """
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        if "\\u0000" in text:
            raise ValueError("an argument has an embedded null character")
        wanted = None if options is None else byref(options)
        return self.document(library.buckia_call, database, name.encode(), text.encode(), wanted)

    def outcome(self, function: Function, *arguments: Any) -> tuple[Any, Optional[Error]]:
        """The same for a function that may give both a document and an error.

        Raises:
            What a callback has raised.
        """
        document = c_void_p()
        stopped: Optional[Error] = None
        try:
            self.result(function, *arguments, byref(document))
        except Error as error:
            stopped = error
        finally:
            written = taken(document)
        return (None if written is None else json.loads(written)), stopped

    def result(self, function: Function, *arguments: Any) -> int:
        """Calls a function whose last parameter is an error, and returns its status."""
        error = c_void_p()
        handler = self._catch_interrupts()
        try:
            status = int(function(*arguments, byref(error)))
        finally:
            if handler is not None:
                signal.signal(signal.SIGINT, handler)
        try:
            if self._raised is not None:
                raise self._raised
            if status not in (_abi.OK, _abi.ROW, _abi.DONE):
                raise failure(status, error)
            return status
        finally:
            library.buckia_error_free(error)
            # Otherwise the exception and this object keep each other alive, with all that was on the stack.
            self._raised = None


def log(document: Any) -> None:
    """Says to the logger `buckia` what a document warns of, and what became of files."""
    for warning in document.get("warnings", ()):
        logger.warning("%s", warning)
    for diff in document.get("diffs", ()):
        is_done = diff["state"] in ("applied", "already-applied")
        reason = "" if diff["reason"] is None else f": {diff['reason']}"
        logger.log(logging.INFO if is_done else logging.WARNING, "%s: %s%s", diff["path"], diff["state"], reason)
        for warning in diff["warnings"]:
            logger.warning("%s: %s", diff["path"], warning)


def failure(status: int, error: c_void_p) -> Error:
    """The error of a call that has failed. C's own is still to be freed."""
    if not error.value:
        return MisuseError("misuse", f"the library has refused the call with status {status} and no word")
    code = decoded(library.buckia_error_code(error))
    where = library.buckia_error_path(error)
    details = json.loads(decoded(library.buckia_error_json(error)) or "{}").get("error") or {}
    return error_class(code, status)(
        code,
        decoded(library.buckia_error_message(error)),
        path=None if where is None else Path(decoded(where)),
        offset=details.get("offset"),
    )
