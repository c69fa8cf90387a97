"""Lets a Python library do one piece of work, or several, and prints the seconds that each took.

Python's start and the imports do not count: only the library's own work does.

    peer.py versions
    peer.py hosts
    peer.py geodiff-diff OLD NEW OUTPUT
    peer.py geodiff-apply DATABASE CHANGESET
    peer.py apsw-diff OLD NEW OUTPUT
    peer.py apsw-apply DATABASE CHANGESET
    peer.py apsw-apply-omitting DATABASE CHANGESET
    peer.py geodiff-diff-each OLD NEW HOME OUTPUT...
    peer.py geodiff-apply-each CHANGESET HOME DATABASE...
    peer.py package-diff OLD NEW HOME OUTPUT...
    peer.py package-apply FILE HOME DATABASE...
    peer.py extension-diff EXTENSION OLD NEW HOME OUTPUT...
    peer.py extension-apply EXTENSION FILE HOME DATABASE...
"""

import os
import sys
import time
from functools import partial

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


def geodiff_diff_each(old, new, home, *outputs):
    import pygeodiff

    geodiff = pygeodiff.GeoDiff()
    return [partial(geodiff.create_changeset, old, new, output) for output in outputs]


def geodiff_apply_each(changeset, home, *databases):
    import pygeodiff

    geodiff = pygeodiff.GeoDiff()
    return [partial(geodiff.apply_changeset, database, changeset) for database in databases]


def package_diff(old, new, home, *outputs):
    import buckia

    def work(output):
        buckia.Database(new, home=home).diff(old, output)

    return [partial(work, output) for output in outputs]


def package_apply(file, home, *databases):
    import buckia

    def work(database):
        if len(buckia.Database(database, home=home).apply(file).applied) != 1:
            sys.exit(f"{database}: the file was not applied")

    return [partial(work, database) for database in databases]


def extension_host():
    """What opens databases, and its description: sqlite3, or apsw where this Python's sqlite3 loads no extensions."""
    import sqlite3

    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3.connect, f"sqlite3 with SQLite {sqlite3.sqlite_version}"
    import apsw

    return apsw.Connection, f"apsw with its own SQLite {apsw.sqlite_lib_version()}"


def connecting_with(extension):
    """What opens databases with the extension.

    The library is loaded into the process here. Connections then only get to know its functions.
    """
    connect, _ = extension_host()

    def opened(path):
        connection = connect(path)
        connection.enable_load_extension(True)
        connection.load_extension(extension)
        return connection

    opened(":memory:").close()
    return opened


def publish(path, content):
    """Writes a file as Buckia does: under another name at first, and on the disk before it gets its own."""
    with open(path + ".part", "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".part", path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def extension_diff(extension, old, new, home, *outputs):
    # The connection has nothing to do with the two databases.
    connection = connecting_with(extension)(":memory:")
    query = "SELECT buckia_diff(?, ?, json_object('raw', json('false'), 'home', ?))"

    def work(output):
        (changes,) = connection.execute(query, (old, new, home)).fetchone()
        publish(output, changes)

    return [partial(work, output) for output in outputs]


def extension_apply(extension, file, home, *databases):
    connect = connecting_with(extension)
    query = "SELECT json_extract(buckia_apply(?, json_object('home', ?)), '$.diffs[0].state')"

    def work(database):
        connection = connect(database)
        (state,) = connection.execute(query, (file, home)).fetchone()
        connection.close()
        if state != "applied":
            sys.exit(f"{database}: the file was not applied")

    return [partial(work, database) for database in databases]


def versions():
    import apsw
    import pygeodiff

    print(f"apsw {apsw.apsw_version()} with its own SQLite {apsw.sqlite_lib_version()}")
    print(f"pygeodiff {pygeodiff.GeoDiff().version()}")
    print(f"Python {sys.version.split()[0]}")


def hosts():
    """Prints what can be called from here, each in a line: a word for the benchmarks and a description for people."""
    try:
        import buckia
    except ImportError:
        pass
    else:
        print(f"package Buckia's Python package {buckia.__version__} in Python {sys.version.split()[0]}")
    import pygeodiff

    print(f"extension {extension_host()[1]}")
    print(f"geodiff pygeodiff {pygeodiff.GeoDiff().version()}")


def main(verb, *arguments):
    if verb == "versions":
        return versions()
    if verb == "hosts":
        return hosts()
    work = globals()[verb.replace("-", "_")](*arguments)
    pieces = [work] if callable(work) else work
    for piece in pieces:
        began = time.perf_counter()
        piece()
        print(time.perf_counter() - began)


main(*sys.argv[1:])
