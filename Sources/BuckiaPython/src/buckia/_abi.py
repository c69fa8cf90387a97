"""`buckia.h` for ctypes: the structs, the functions, the library. A test compares them with the header."""

from __future__ import annotations

import ctypes
import sys
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint8,
    c_void_p,
)
from pathlib import Path
from typing import Any

ABI_VERSION = 1

# buckia_status
OK, ERROR, BUSY, CANCELLED, CALLBACK_FAILED, MISUSE, ROW, DONE = 0, 1, 3, 4, 5, 64, 100, 101
# buckia_type
NONE, INTEGER, REAL, TEXT, BLOB, NULL = range(6)
# buckia_answer
ANSWER_DEFAULT, ANSWER_LOCAL, ANSWER_INCOMING, ANSWER_ABORT, ANSWER_ROW, ANSWER_FAIL = range(6)

# The words of the other enums are those of the command line and of --json.
OPERATIONS = {"insert": 1, "update": 2, "delete": 3}
ACTIVITIES = {"comparing": 1, "verifying": 2, "applying": 3, "rewriting": 4, "working": 5}
TRUST_MODES = {"any": 1, "known": 2}
COPY_POLICIES = {"ask": 0, "same": 1, "apart": 2}
METHODS = {"auto": 0, "pages": 1, "rows": 2, "session": 3}
POLICIES = {"keep-local": 0, "take-incoming": 1, "abort": 2, "latest": 3}
SCHEMA_MODES = {"additive": 0, "exact": 1, "hold": 2, "adopt": 3}
CONFLICT_KINDS = {"data": 1, "not-found": 2, "conflict": 3, "constraint": 4, "foreign-key": 5}
VERSIONS = {"local": 1, "incoming": 2, "values": 3, "both": 4, "same": 5}
ANSWERS = {word: number for word, number in VERSIONS.items() if word != "values"}


class Value(Structure):
    _fields_ = [
        ("type", c_int),
        ("integer", c_int64),
        ("real", c_double),
        ("bytes", c_void_p),
        ("length", c_size_t),
        ("whole_length", c_int64),
    ]


class Cell(Structure):
    _fields_ = [("column", c_char_p), ("value", Value)]


class Progress(Structure):
    _fields_ = [
        ("activity", c_int),
        ("subject", c_char_p),
        ("files", c_int64),
        ("file_count", c_int64),
        ("rows", c_int64),
        ("bytes", c_int64),
        ("byte_count", c_int64),
    ]


class Conflict(Structure):
    _fields_ = [
        ("table", c_char_p),
        ("kind", c_int),
        ("operation", c_int),
        ("column_count", c_size_t),
        ("columns", POINTER(c_char_p)),
        ("is_key", POINTER(c_bool)),
        ("base", POINTER(Value)),
        ("local", POINTER(Value)),
        ("incoming", POINTER(Value)),
        ("reason", c_char_p),
        ("violations", c_int64),
    ]


class Change(Structure):
    _fields_ = [
        ("table", c_char_p),
        ("operation", c_int),
        ("indirect", c_bool),
        ("column_count", c_size_t),
        ("columns", POINTER(c_char_p)),
        ("is_key", POINTER(c_bool)),
        ("old_values", POINTER(Value)),
        ("new_values", POINTER(Value)),
    ]


ProgressCallback = CFUNCTYPE(c_int, c_void_p, POINTER(Progress))
WriteCallback = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
ConflictCallback = CFUNCTYPE(c_int, c_void_p, POINTER(Conflict), c_void_p)
ItemCallback = CFUNCTYPE(c_int, c_void_p, c_char_p)


class Options(Structure):
    """A struct that begins with its size."""

    def __init__(self, **members: object) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **members)


_NAMES = POINTER(c_char_p)
_PROGRESS: list[Any] = [("progress", ProgressCallback), ("progress_context", c_void_p), ("cancellation", c_void_p)]
_WRITE: list[Any] = [("write", WriteCallback), ("write_context", c_void_p)]


class DiffOptions(Options):
    _fields_ = [
        ("size", c_size_t),
        ("tables", _NAMES),
        ("table_count", c_size_t),
        ("method", c_int),
        ("raw", c_bool),
        ("replace", c_bool),
        ("unrelated", c_bool),
        ("again", c_bool),
        ("sign", c_bool),
        *_WRITE,
        *_PROGRESS,
    ]


class ShareOptions(Options):
    _fields_ = [
        ("size", c_size_t),
        ("unencrypted", c_bool),
        ("dry_run", c_bool),
        ("resync", c_bool),
        ("keep_on_leave", c_bool),
        ("propagate", c_bool),
        ("acknowledge", c_bool),
        ("replace", c_bool),
        *_WRITE,
        *_PROGRESS,
    ]


class TablePolicy(Structure):
    _fields_ = [("table", c_char_p), ("column", c_char_p), ("policy", c_int)]


class TableColumns(Structure):
    _fields_ = [("table", c_char_p), ("columns", _NAMES), ("column_count", c_size_t)]


class ApplyOptions(Options):
    _fields_ = [
        ("size", c_size_t),
        ("on_conflict", c_int),
        ("policies", POINTER(TablePolicy)),
        ("policy_count", c_size_t),
        ("schema", c_int),
        ("trust", c_int),
        ("triggers", c_bool),
        ("keep", c_bool),
        ("remove", c_bool),
        ("dry_run", c_bool),
        ("refuse_new_dataset", c_bool),
        ("snapshot", c_char_p),
        ("memory", c_int64),
        ("identities", _NAMES),
        ("identity_count", c_size_t),
        ("passphrase", c_char_p),
        ("ignored", POINTER(TableColumns)),
        ("ignored_count", c_size_t),
        ("matches", POINTER(TableColumns)),
        ("match_count", c_size_t),
        ("copies", c_int),
        ("resolve", ConflictCallback),
        ("resolve_context", c_void_p),
        *_PROGRESS,
    ]


class ConflictFilter(Options):
    _fields_ = [
        ("size", c_size_t),
        ("table", c_char_p),
        ("diff", c_char_p),
        ("kind", c_int),
        ("open", c_bool),
    ]


class ResolveOptions(Options):
    _fields_ = [
        ("size", c_size_t),
        ("values", POINTER(Cell)),
        ("value_count", c_size_t),
        ("decided_by", c_char_p),
        ("force", c_bool),
        ("remember", c_bool),
        ("dry_run", c_bool),
        *_PROGRESS,
    ]


class UndoOptions(Options):
    _fields_ = [
        ("size", c_size_t),
        ("on_conflict", c_int),
        ("dry_run", c_bool),
        ("senders", _NAMES),
        ("sender_count", c_size_t),
        *_PROGRESS,
    ]


class FileOptions(Options):
    _fields_ = [
        ("size", c_size_t),
        ("home", c_char_p),
        ("home_passphrase", c_char_p),
        ("identities", _NAMES),
        ("identity_count", c_size_t),
        ("passphrase", c_char_p),
        ("replace", c_bool),
        *_PROGRESS,
    ]


class KSUID(Structure):
    _fields_ = [("text", ctypes.c_char * 28), ("bytes", c_uint8 * 20), ("unix_seconds", c_int64)]


# Text and errors that the caller frees are void pointers here: ctypes would make bytes of a char pointer, and lose it.
_ERROR = POINTER(c_void_p)
_JSON = POINTER(c_void_p)
_DATABASE = c_void_p

FUNCTIONS = {
    "buckia_abi_version": (c_int, []),
    "buckia_version": (c_char_p, []),
    "buckia_version_text": (c_void_p, []),
    "buckia_free": (None, [c_void_p]),
    "buckia_error_code": (c_char_p, [c_void_p]),
    "buckia_error_message": (c_char_p, [c_void_p]),
    "buckia_error_path": (c_char_p, [c_void_p]),
    "buckia_error_json": (c_char_p, [c_void_p]),
    "buckia_error_free": (None, [c_void_p]),
    "buckia_open": (c_int, [c_char_p, POINTER(_DATABASE), _ERROR]),
    "buckia_open_handle": (c_int, [c_void_p, c_void_p, POINTER(_DATABASE), _ERROR]),
    "buckia_close": (None, [_DATABASE]),
    "buckia_set_home": (c_int, [_DATABASE, c_char_p, c_char_p, _ERROR]),
    "buckia_set_busy_timeout": (c_int, [_DATABASE, c_int, _ERROR]),
    "buckia_init": (c_int, [_DATABASE, c_int, _JSON, _ERROR]),
    "buckia_diff": (c_int, [_DATABASE, c_char_p, c_char_p, POINTER(DiffOptions), _JSON, _ERROR]),
    "buckia_share": (
        c_int,
        [_DATABASE, c_char_p, _NAMES, c_size_t, c_char_p, POINTER(ShareOptions), _JSON, _ERROR],
    ),
    "buckia_row_set": (c_int, [c_void_p, c_char_p, POINTER(Value)]),
    "buckia_apply": (c_int, [_DATABASE, _NAMES, c_size_t, POINTER(ApplyOptions), c_void_p, _JSON, _ERROR]),
    "buckia_each_conflict": (
        c_int,
        [_DATABASE, POINTER(ConflictFilter), c_int64, ItemCallback, c_void_p, _ERROR],
    ),
    "buckia_resolve": (
        c_int,
        [_DATABASE, POINTER(c_int64), c_size_t, c_int, POINTER(ResolveOptions), _JSON, _ERROR],
    ),
    "buckia_rules": (c_int, [_DATABASE, _JSON, _ERROR]),
    "buckia_forget_rule": (c_int, [_DATABASE, c_int64, _ERROR]),
    "buckia_log": (c_int, [_DATABASE, c_int64, _JSON, _ERROR]),
    "buckia_each_log_entry": (c_int, [_DATABASE, ItemCallback, c_void_p, _ERROR]),
    "buckia_undo": (c_int, [_DATABASE, _NAMES, c_size_t, POINTER(UndoOptions), _JSON, _ERROR]),
    "buckia_call": (c_int, [_DATABASE, c_char_p, c_char_p, POINTER(FileOptions), _JSON, _ERROR]),
    "buckia_verify": (c_int, [_NAMES, c_size_t, POINTER(FileOptions), POINTER(c_bool), _JSON, _ERROR]),
    "buckia_invert": (c_int, [c_char_p, c_char_p, POINTER(FileOptions), _JSON, _ERROR]),
    "buckia_concat": (c_int, [_NAMES, c_size_t, c_char_p, POINTER(FileOptions), _JSON, _ERROR]),
    "buckia_changes_open": (c_int, [c_char_p, POINTER(FileOptions), POINTER(c_void_p), _ERROR]),
    "buckia_changes_open_bytes": (
        c_int,
        [c_void_p, c_size_t, POINTER(FileOptions), POINTER(c_void_p), _ERROR],
    ),
    "buckia_changes_manifest": (c_char_p, [c_void_p]),
    "buckia_changes_next": (c_int, [c_void_p, POINTER(POINTER(Change)), _ERROR]),
    "buckia_changes_read": (
        c_int,
        [c_void_p, POINTER(Value), c_int64, c_void_p, c_size_t, POINTER(c_size_t), _ERROR],
    ),
    "buckia_changes_close": (None, [c_void_p]),
    "buckia_ksuid_new": (c_int, [c_char_p, POINTER(KSUID), _ERROR]),
    "buckia_ksuid_parse": (c_int, [c_char_p, POINTER(KSUID), _ERROR]),
}


def _load() -> ctypes.CDLL:
    name = "libbuckia.dylib" if sys.platform == "darwin" else "libbuckia.so"
    library = ctypes.CDLL(str(Path(__file__).with_name(name)))
    version = library.buckia_abi_version()
    if version != ABI_VERSION:
        raise ImportError(f"{name} has version {version} of its interface, where {ABI_VERSION} is needed")
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


library = _load()
