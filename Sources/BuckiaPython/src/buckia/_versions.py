"""The versions of what is in the wheel."""

from __future__ import annotations

from ctypes import c_void_p

from ._abi import library
from ._calls import decoded, taken


def version_text() -> str:
    """The versions of Buckia, SQLite and zstd in one line, for bug reports."""
    return taken(c_void_p(library.buckia_version_text())) or ""


def library_version() -> str:
    """The version of the library in the wheel, which is that of the package."""
    return decoded(library.buckia_version())
