// Uses the engine for something real, then prints the shared libraries this process has loaded, one a line.
//
// Linkers drop libraries nobody calls, so an import alone would prove nothing: what is called here is what counts.
import BuckiaEngine
import BuckiaKSUID
import SQLiteChangesets
import SQLiteConnections

let connection = try SQLiteConnection(opening: ":memory:", as: .create)
try connection.execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
let session = try SQLiteSession(on: connection)
try session.attach()
try connection.execute("INSERT INTO notes VALUES(1, 'a')")
let changeset = try session.changeset()
var reader = ChangesetReader()
let change = try reader.next(in: changeset.span.bytes)
print("engine: SQLite \(SQLiteConnection.libraryVersion), \(DiffOptions().isRaw), \(String(describing: change))")

for library in try LoadedLibraries.paths() { print("library: \(library)") }
