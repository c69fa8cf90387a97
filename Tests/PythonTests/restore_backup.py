"""Restores the newest point of a backup store without Buckia: python3 restore_backup.py STORE DATABASE"""

import hashlib
import json
import pathlib
import subprocess
import sys


def objects(store: pathlib.Path) -> dict[str, tuple[dict, dict, bytes]]:
    found: dict[str, tuple[int, tuple[dict, dict, bytes]]] = {}
    for path in store.glob("*.backup"):
        content = path.read_bytes()
        lines = content[:4096].rstrip(b"\0").split(b"\n")
        assert lines[0] == b"buckia backup 1", path
        point, payload, body = json.loads(lines[1]), json.loads(lines[3]), content[4096:]
        assert hashlib.sha256(body).hexdigest() == payload["sha256"], path
        generation = int((path.stem.split("-") + ["1"])[1])
        if generation > found.get(point["id"], (0,))[0]:
            found[point["id"]] = generation, (point, payload, body)
    return {id: entry for id, (_, entry) in found.items()}


def restore(store: pathlib.Path) -> bytes:
    known = objects(store)
    newest, pages, id = known[max(known)][0], {}, max(known)
    while id is not None:
        _, payload, body = known[id]
        runs = subprocess.run(["zstd", "-dc"], input=body, stdout=subprocess.PIPE, check=True).stdout
        place, size = 0, newest["pageSize"]
        while count := int.from_bytes(runs[place + 4 : place + 8], "big"):
            first, place = int.from_bytes(runs[place : place + 4], "big"), place + 8
            for page in range(first, first + count):
                pages.setdefault(page, runs[place : place + size])
                place += size
        id = payload.get("base")
    kept = [pages[number] for number in range(newest["pages"])]
    digests = (hashlib.sha256(number.to_bytes(8, "big") + page).digest() for number, page in enumerate(kept))
    assert sum(int.from_bytes(digest, "big") for digest in digests) % 2**256 == int(newest["sum"], 16)
    return b"".join(kept)


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_bytes(restore(pathlib.Path(sys.argv[1])))
