"""A reader of diff files that knows nothing but Schemas/core.md.

    python3 reader.py FILE…

It checks files as that page says, and lists their changes. Besides the standard library it needs the command zstd.
It keeps everything in memory, because it is written to be read beside the page.
"""

import hashlib
import json
import re
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Optional

KNOWN = (
    "format critical kind id dataset sender audience chain acks schema renames ownKeys sharedWith tables state resent "
    "requests members"
).split()
OPERATIONS = {18: "inserted", 23: "updated", 9: "deleted"}
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Refused(ValueError):
    """The file breaks a rule of the format."""


def check(condition: Any, reason: str) -> None:
    if not condition:
        raise Refused(reason)


class Bytes:
    """Bytes that are read from the first to the last."""

    def __init__(self, content: bytes, name: str) -> None:
        self.content, self.name, self.place = content, name, 0

    def take(self, count: int) -> bytes:
        check(self.place + count <= len(self.content), f"the {self.name} ends too early")
        self.place += count
        return self.content[self.place - count : self.place]

    def little_endian(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")


def unpack(content: bytes) -> bytes:
    """Returns the content of a zstd frame, which begins and ends with the file."""
    frame = Bytes(content, "frame")
    check(frame.take(4) == b"\x28\xb5\x2f\xfd", "this is not a zstd frame")
    [descriptor] = frame.take(1)
    check(descriptor & 0b11111 == 0b100, "the frame has no checksum, or it has a dictionary or reserved bits")
    is_single = descriptor >> 5 & 1
    window = 0 if is_single else frame.little_endian(1)
    size_bytes = (is_single, 2, 4, 8)[descriptor >> 6]
    size = frame.little_endian(size_bytes) + (256 if size_bytes == 2 else 0)
    size = size if is_single else (1 << 10 + (window >> 3)) * (8 + (window & 7)) // 8
    check(size <= 8_388_608, "the window is too large")
    header = 0
    while not header & 1:
        header = frame.little_endian(3)
        frame.take(1 if header >> 1 & 3 == 1 else header >> 3)
    check(frame.place + 4 == len(content), "the frame does not end with the file")
    # zstd checks the blocks and the checksum.
    zstd = subprocess.run(["zstd", "-dcq"], input=content, capture_output=True)
    check(zstd.returncode == 0, "the frame is damaged")
    return zstd.stdout


class Archive(Bytes):
    def member(self, name: str, size: int) -> bytes:
        check(self.take(512) == self.header(name.encode(), size), f"the header of {name} is wrong")
        content = self.take(size)
        check(not any(self.take(-size % 512)), f"the padding of {name} is not zero")
        return content

    def manifest(self) -> bytes:
        size = self.content[124:135]
        check(re.fullmatch(rb"[0-7]{11}", size) and int(size, 8) <= 1_048_064, "there is no manifest")
        return self.member("manifest.json", int(size, 8))

    @staticmethod
    def header(name: bytes, size: int) -> bytes:
        front = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + b"%011o\0" % size + b"00000000000\0"
        rest = b"0" + bytes(100) + b"ustar\x0000" + bytes(64) + b"0000000\0" * 2 + bytes(167)
        return front + b"%06o\0 " % (sum(front) + 8 * ord(" ") + sum(rest)) + rest


def parse(document: bytes) -> Any:
    """Reads a JSON document, more strictly than Python does."""

    def refuse(number: str) -> NoReturn:
        raise Refused(f"the number {number}")

    def integer(digits: str) -> int:
        check(not digits.startswith("-0") and -(2**63) <= int(digits) < 2**63, f"the number {digits}")
        return int(digits)

    def object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        check(len(dict(pairs)) == len(pairs), "an object has two members with the same name")
        return {name: value for name, value in pairs if value is not None}

    def depth(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, inner), default=0) if isinstance(value, (dict, list)) else 0

    try:
        value = json.loads(
            document.decode(), parse_float=refuse, parse_constant=refuse, parse_int=integer, object_pairs_hook=object
        )
        json.dumps(value, ensure_ascii=False).encode()  # fails for unpaired surrogates
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from error
    check(depth(value) <= 16, "the document is nested too deep")
    return value


def field(object: Any, name: str, kind: type) -> Any:
    value = object.get(name) if isinstance(object, dict) else None
    check(type(value) is kind and (kind is not int or 0 <= value < 2**53), f"{name} is missing or of another kind")
    return value


def octets(object: Any, name: str, count: int) -> bytes:
    digits = field(object, name, str)
    check(re.fullmatch(f"[0-9a-f]{{{2 * count}}}", digits), f"{name} does not have {count} bytes in hexadecimal digits")
    return bytes.fromhex(digits)


def is_id(text: str) -> bool:
    digits = [DIGITS.find(digit) for digit in text]
    return len(text) == 27 and min(digits) >= 0 and sum(d * 62**place for place, d in enumerate(digits[::-1])) < 2**160


# Ed25519, as in RFC 8032, section 5.1, in extended coordinates.

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int, int, int]


def add(a: Point, b: Point) -> Point:
    e, f = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0])
    g, h = 2 * a[3] * b[3] * D, 2 * a[2] * b[2]
    e, f, g, h = f - e, h - g, h + g, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(factor: int, point: Point) -> Point:
    sum = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            sum = add(sum, point)
        point, factor = add(point, point), factor >> 1
    return sum


def decode_point(encoded: bytes) -> Optional[Point]:
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def has_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    base = decode_point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    a, r, s = decode_point(key), decode_point(signature[:32]), int.from_bytes(signature[32:], "little")
    if base is None or a is None or r is None or s >= ORDER:
        return False
    hash = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little")
    one, other = multiply(s, base), add(r, multiply(hash % ORDER, a))
    return all((one[axis] * other[2] - other[axis] * one[2]) % P == 0 for axis in (0, 1))


class Change(NamedTuple):
    operation: str
    table: str
    old: dict[str, Any]  # the old values by column; empty for an INSERT
    new: dict[str, Any]


class Changeset(Bytes):
    def varint(self) -> int:
        value = 0
        for _ in range(8):
            [byte] = self.take(1)
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value
        return value << 8 | self.take(1)[0]

    def value(self) -> list[Any]:
        """Returns a list with the value, or an empty one where it is undefined."""
        [kind] = self.take(1)
        check(kind <= 5, f"a value has the type {kind}")
        if kind in (1, 2):
            return list(struct.unpack(">q" if kind == 1 else ">d", self.take(8)))
        if kind in (3, 4):
            content = self.take(self.varint())
            return [content if kind == 4 else content.decode(errors="surrogateescape")]  # text can be any bytes
        return [] if kind == 0 else [None]

    def record(self, columns: list[str]) -> dict[str, Any]:
        return {column: value for column in columns for value in self.value()}

    def header(self) -> tuple[str, list[int]]:
        start = self.place
        count = self.varint()
        check(1 <= count <= 2001 and self.place - start == 1 + (count > 127), "a header has no possible column count")
        key = list(self.take(count))
        name = self.take(max(self.content.find(b"\0", self.place), self.place) - self.place)
        check(any(key) and 0 < len(name) <= 1024 and self.take(1) == b"\0", "a header has no key or no name")
        check(not re.match(b"sqlite_|buckia_|pragma_", name, re.IGNORECASE), f"it has changes of {name!r}")
        return name.decode(), key

    def changes(self, columns: dict[str, list[str]], keys: dict[str, list[str]]) -> Iterator[Change]:
        """Reads all changes of tables with these columns and key columns, and checks them against these."""
        table = ""
        while self.place < len(self.content):
            [byte] = self.take(1)
            if byte == ord("T"):
                table, key = self.header()
                check(len(columns.get(table, [])) == len(key), f"the columns of {table} are not those of schema.json")
                found = {column for column, place in zip(columns[table], key) if place}
                check(found == set(keys[table]), f"the key of {table} is not that of schema.json")
                continue
            check(byte in OPERATIONS and table, f"byte {self.place - 1} begins neither a change nor a header")
            self.take(1)  # 1 if it is indirect
            old = self.record(columns[table]) if byte != 18 else {}
            new = self.record(columns[table]) if byte != 9 else {}
            if byte == 23:
                new = {column: value for column, value in new.items() if column not in keys[table]}
                old = {column: value for column, value in old.items() if column in keys[table] or column in new}
                check(len(old) == len(keys[table]) + len(new), f"an UPDATE of {table} lacks old values")
            else:
                check(len(old or new) == len(columns[table]), f"a change of {table} lacks values")
            yield Change(OPERATIONS[byte], table, old, new)


def read(path: Path) -> tuple[dict[str, Any], list[Change]]:
    """Returns the manifest and the changes of a file, once everything in it has been checked."""
    archive = Archive(unpack(path.read_bytes()), "archive")
    manifest_bytes = archive.manifest()
    manifest = parse(manifest_bytes)
    check(field(manifest, "format", int) == 1, "a newer version has made it")
    check(set(field(manifest, "critical", list)) <= set(KNOWN), "it needs a newer reader")
    id = field(manifest, "id", str)
    check(is_id(id), f"{id} is no id")
    check(not is_id(path.stem) or path.suffix != ".bdiff" or path.stem == id, f"its name is not {id}.bdiff")
    if "identity" in manifest.get("sender", {}):  # otherwise a signature is one member too many
        message, key = b"buckia/manifest/v1\n" + manifest_bytes, octets(manifest["sender"], "identity", 32)
        check(has_signed(key, message, archive.member("manifest.sig", 64)), "the signature is wrong")
    members = {}
    for entry in field(manifest, "members", list):
        name = field(entry, "name", str)
        members[name] = archive.member(name, field(entry, "size", int))
        check(hashlib.sha256(members[name]).digest() == octets(entry, "sha256", 32), f"the digest of {name} is wrong")
    check(archive.content[archive.place :] == bytes(1024), "the archive does not end as it must")
    changeset = b"".join(content for name, content in members.items() if name.startswith("changeset"))
    tables, definitions = field(manifest, "tables", list), {}
    if "schema.json" in members:
        document = members["schema.json"]
        check(hashlib.sha256(document).digest() == octets(manifest, "schema", 32), "schema.json is another one")
        definitions = {field(table, "name", str): table for table in field(parse(document), "tables", list)}
    columns, keys = dict[str, list[str]](), dict[str, list[str]]()
    for table in tables:
        name = field(table, "name", str)
        check(name in definitions, f"{name} is not defined in the file, and this reader knows no other definitions")
        names = [field(column, "name", str) for column in field(definitions[name], "columns", list)]
        key = [names[place] for place in field(definitions[name], "primaryKey", list)]
        check((field(table, "key", str) == "rowid") == (not key), f"the key of {name} is not that of schema.json")
        columns[name], keys[name] = (names, key) if key else (["_rowid_", *names], ["_rowid_"])
        check(field(table, "columns", int) == len(columns[name]), f"{name} has another number of columns")
    changes = list(Changeset(changeset, "changeset").changes(columns, keys))
    check(list(dict.fromkeys(change.table for change in changes)) == list(columns), "the tables have another order")
    counts = Counter((change.table, change.operation) for change in changes)
    for table in tables:
        for operation in OPERATIONS.values():
            check(field(table, operation, int) == counts[table["name"], operation], f"not as many rows are {operation}")
    return manifest, changes


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        manifest, changes = read(Path(argument))
        print(manifest["id"], "signed by", manifest.get("sender", {}).get("identity", "no key"))
        for change in changes:
            print(change.operation, change.table, change.old, "->", change.new)
