"""What Python says of the C interface is what buckia.h says."""

import ctypes
import re
from pathlib import Path

import pytest

from buckia import _abi

HEADER = Path(__file__).parents[2] / "Sources" / "CBuckia" / "include" / "buckia.h"
TEXT = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)
ENUMS = {name: body for body, name in re.findall(r"typedef enum \w+ \{(.*?)\} (\w+);", TEXT, re.DOTALL)}
CALLBACKS = set(re.findall(r"\(\*(buckia_\w+)\)", TEXT))
SCALARS = {
    "int": ctypes.c_int,
    "bool": ctypes.c_bool,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int64_t": ctypes.c_int64,
    "void": None,
}
STRUCTS = {
    "buckia_value": _abi.Value,
    "buckia_cell": _abi.Cell,
    "buckia_progress": _abi.Progress,
    "buckia_conflict": _abi.Conflict,
    "buckia_change": _abi.Change,
    "buckia_diff_options": _abi.DiffOptions,
    "buckia_share_options": _abi.ShareOptions,
    "buckia_table_policy": _abi.TablePolicy,
    "buckia_table_columns": _abi.TableColumns,
    "buckia_apply_options": _abi.ApplyOptions,
    "buckia_conflict_filter": _abi.ConflictFilter,
    "buckia_resolve_options": _abi.ResolveOptions,
    "buckia_undo_options": _abi.UndoOptions,
    "buckia_file_options": _abi.FileOptions,
    "buckia_ksuid": _abi.KSUID,
}


def constants() -> dict[str, int]:
    """The constants of all enums."""
    return {name: int(number) for body in ENUMS.values() for name, number in re.findall(r"(\w+)\s*=\s*(\d+)", body)}


def kind(declaration: str) -> str:
    """What a C type is to ctypes: a scalar, or how deep a pointer to what."""
    words = re.sub(r"\b(const|struct)\b", "", declaration)
    name, depth = words.replace("*", "").strip(), words.count("*")
    if name in ENUMS:
        name = "int"
    if name in CALLBACKS:
        return "callback"
    return f"{name}{'*' * depth}"


def fits(declaration: str, type_: object) -> bool:
    """True if a type of ctypes stands for a C type."""
    said = kind(declaration)
    if said == "callback":
        return isinstance(type_, type) and issubclass(type_, ctypes._CFuncPtr)  # type: ignore[attr-defined]
    if said in SCALARS:
        return type_ is SCALARS[said]
    assert said.endswith("*"), declaration
    if type_ is ctypes.c_void_p:
        return True
    if type_ is ctypes.c_char_p:
        return said == "char*"
    target = type_._type_  # type: ignore[attr-defined]
    inner = said[:-1]
    if inner in STRUCTS:
        return target is STRUCTS[inner]
    return fits(inner, target)


def members(name: str) -> list[tuple[str, str]]:
    """The members of a struct: their types and names."""
    found = re.search(rf"typedef struct {name} \{{(.*?)\}} {name};", TEXT, re.DOTALL)
    assert found, name
    return [
        (type_.strip(), member)
        for type_, member in re.findall(r"^\s*([\w\s*]+?[\s*])(\w+)(?:\[[^]]*\])?;", found[1], re.MULTILINE)
    ]


@pytest.mark.parametrize("name", STRUCTS)
def test_a_struct_has_the_members_of_the_header(name: str) -> None:
    fields = STRUCTS[name]._fields_
    said = members(name)
    assert [field for field, _ in fields] == [member for _, member in said]
    for (declaration, member), (_, type_) in zip(said, fields):
        if isinstance(type_, type) and issubclass(type_, ctypes.Array):
            assert name == "buckia_ksuid" and member in ("text", "bytes")
        elif declaration in STRUCTS:
            assert type_ is STRUCTS[declaration]
        else:
            assert fits(declaration, type_), (name, member, declaration, type_)


@pytest.mark.parametrize("name", _abi.FUNCTIONS)
def test_a_function_has_the_parameters_of_the_header(name: str) -> None:
    found = re.search(rf"BUCKIA_API\s+([\w\s*]+?)\b{name}\s*\((.*?)\);", TEXT, re.DOTALL)
    assert found, name
    result, types = _abi.FUNCTIONS[name]
    assert result is None if kind(found[1]) == "void" else fits(found[1], result)
    parameters = [] if found[2].strip() == "void" else [part.strip() for part in found[2].split(",")]
    assert len(parameters) == len(types)
    for parameter, type_ in zip(parameters, types):
        declaration = re.sub(r"\w+$", "", parameter).strip()
        assert fits(declaration, type_), (name, parameter, type_)


def test_the_constants_are_those_of_the_header() -> None:
    said = constants()
    plain = ["OK", "ERROR", "BUSY", "CANCELLED", "CALLBACK_FAILED", "MISUSE", "ROW", "DONE"]
    plain += ["NONE", "INTEGER", "REAL", "TEXT", "BLOB", "NULL"]
    plain += [f"ANSWER_{word}" for word in ("DEFAULT", "LOCAL", "INCOMING", "ABORT", "ROW", "FAIL")]
    for name in plain:
        assert getattr(_abi, name) == said[f"BUCKIA_{name}"], name
    words = [
        ("", _abi.OPERATIONS),
        ("", _abi.ACTIVITIES),
        ("TRUST_", _abi.TRUST_MODES),
        ("COPIES_", _abi.COPY_POLICIES),
        ("METHOD_", _abi.METHODS),
        ("", _abi.POLICIES),
        ("SCHEMA_", _abi.SCHEMA_MODES),
        ("CONFLICT_", _abi.CONFLICT_KINDS),
        ("RESOLVE_", _abi.VERSIONS),
    ]
    for prefix, numbers in words:
        for word, number in numbers.items():
            assert number == said[f"BUCKIA_{prefix}{word.upper().replace('-', '_')}"], word
    version = re.search(r"#define BUCKIA_ABI_VERSION (\d+)", TEXT)
    assert version and _abi.ABI_VERSION == int(version[1])
    lengths = re.findall(r"#define BUCKIA_KSUID_\w+ (\d+)", TEXT)
    assert [ctypes.sizeof(type_) for _, type_ in _abi.KSUID._fields_] == [int(lengths[0]) + 1, int(lengths[1]), 8]
