"""What can be done with files without a database."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import byref
from typing import Callable, Optional

from . import _abi
from ._abi import library
from ._arguments import path, paths, text
from ._calls import Call
from ._documents import read
from ._progress import Progress
from ._sending import ChangesetReport, VerifyReport
from ._values import PathLike


def file_options(
    call: Call,
    home: Optional[PathLike] = None,
    home_passphrase: Optional[str] = None,
    identities: Iterable[PathLike] = (),
    passphrase: Optional[str] = None,
    progress: Optional[Callable[[Progress], object]] = None,
    replace: bool = False,
) -> _abi.FileOptions:
    """The options of such a call."""
    files, count = paths(identities)
    return _abi.FileOptions(
        home=path(home),
        home_passphrase=text(home_passphrase, "the passphrase"),
        identities=files,
        identity_count=count,
        passphrase=text(passphrase, "the passphrase"),
        replace=replace,
        progress=call.progress(progress),
    )


def verify(
    *files: PathLike,
    home: Optional[PathLike] = None,
    home_passphrase: Optional[str] = None,
    identities: Iterable[PathLike] = (),
    passphrase: Optional[str] = None,
    progress: Optional[Callable[[Progress], object]] = None,
) -> VerifyReport:
    """Opens and checks files and folders completely, and changes nothing.

    A file that is not in order is no error: the report says what is wrong with it.

    Args:
        files: The files and folders.
        home: The folder with the contacts, whose names senders have, and the identity; None for the usual one.
        home_passphrase: What opens that identity where it is protected.
        identities: Files of other identities that open encrypted files.
        passphrase: The passphrase of files that were encrypted with one.
        progress: Is told how far it has come. What it raises stops the call.

    Raises:
        FileError: A path does not exist.
    """
    call = Call()
    options = file_options(call, home, home_passphrase, identities, passphrase, progress)
    report = call.document(library.buckia_verify, *paths(files), byref(options), None)
    return read(VerifyReport, report)


def invert(
    file: PathLike,
    output: PathLike,
    *,
    home: Optional[PathLike] = None,
    replace: bool = False,
    progress: Optional[Callable[[Progress], object]] = None,
) -> ChangesetReport:
    """Writes the changes that undo those of a diff file or a raw changeset.

    They undo what their author did. :meth:`Database.undo` takes back what applying them has done to a database.

    Args:
        file: The file. Encrypted ones are refused.
        output: A folder, which is made where it is missing and gets a file named by its id; a path that ends in
            `.bdiff` or `.changeset`, or names an existing file, is the file itself.
        home: The folder where the clock of the ids is kept; None for the usual one.
        replace: True if a file that is there already is replaced.
        progress: Is told how far it has come. What it raises stops the call.

    Raises:
        FileError: The file is not entirely in order, has no old values, or the output cannot be written.
    """
    call = Call()
    options = file_options(call, home, progress=progress, replace=replace)
    report = call.document(library.buckia_invert, path(file), path(output, "the output"), byref(options))
    return read(ChangesetReport, report)


def concat(
    files: Iterable[PathLike],
    output: PathLike,
    *,
    home: Optional[PathLike] = None,
    replace: bool = False,
    progress: Optional[Callable[[Progress], object]] = None,
) -> ChangesetReport:
    """Joins the changes of files, so that each row is changed once.

    Args:
        files: The files, oldest first.
        output: As of :func:`invert`.
        home: The folder where the clock of the ids is kept; None for the usual one.
        replace: True if a file that is there already is replaced.
        progress: Is told how far it has come. What it raises stops the call.

    Raises:
        FileError: A file is not entirely in order, or the output cannot be written.
    """
    call = Call()
    options = file_options(call, home, progress=progress, replace=replace)
    report = call.document(library.buckia_concat, *paths(files), path(output, "the output"), byref(options))
    return read(ChangesetReport, report)
