"""Lets a Python library do one piece of work and prints the seconds it took.

Python's start and the imports do not count: only the library's own work does.

    peer.py versions
    peer.py geodiff-diff OLD NEW OUTPUT
    peer.py geodiff-apply DATABASE CHANGESET
    peer.py apsw-diff OLD NEW OUTPUT
    peer.py apsw-apply DATABASE CHANGESET
    peer.py apsw-apply-omitting DATABASE CHANGESET
"""

import sys
import time

TABLE = "t"


def geodiff_diff(old, new, output):
    import pygeodiff

    geodiff = pygeodiff.GeoDiff()
    return lambda: geodiff.create_changeset(old, new, output)


def geodiff_apply(database, changeset):
    import pygeodiff

    geodiff = pygeodiff.GeoDiff()
    return lambda: geodiff.apply_changeset(database, changeset)


def apsw_diff(old, new, output):
    import apsw

    def work():
        connection = apsw.Connection(new, flags=apsw.SQLITE_OPEN_READONLY)
        connection.execute("ATTACH ? AS older", (old,))
        session = apsw.Session(connection, "main")
        session.attach(TABLE)
        session.diff("older", TABLE)
        with open(output, "wb") as file:
            file.write(session.changeset())

    return work


def apsw_apply(database, changeset, answer=None):
    import apsw

    with open(changeset, "rb") as file:
        changes = file.read()
    connection = apsw.Connection(database)

    def work():
        if answer is None:
            apsw.Changeset.apply(changes, connection)
        else:
            apsw.Changeset.apply(changes, connection, conflict=lambda reason, change: answer)

    return work


def apsw_apply_omitting(database, changeset):
    import apsw

    return apsw_apply(database, changeset, apsw.SQLITE_CHANGESET_OMIT)


def versions():
    import apsw
    import pygeodiff

    print(f"apsw {apsw.apsw_version()} with its own SQLite {apsw.sqlite_lib_version()}")
    print(f"pygeodiff {pygeodiff.GeoDiff().version()}")
    print(f"Python {sys.version.split()[0]}")


def main(verb, *arguments):
    if verb == "versions":
        versions()
        return
    work = globals()[verb.replace("-", "_")](*arguments)
    began = time.perf_counter()
    work()
    print(time.perf_counter() - began)


main(*sys.argv[1:])
