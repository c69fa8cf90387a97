// Lets the engine do its whole work once, from diff to apply, then prints the shared libraries this process has loaded,
// one a line.
//
// Linkers drop libraries that are not called, so an import alone would prove nothing: hence the calls here.
// The databases go into the folder that is the only argument.
import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import BuckiaBytes
import SQLiteConnections

/// Compares two databases and applies the difference to the older one.
func ship(in folder: String) throws {
  let older = "\(folder)/older.db"
  let newer = "\(folder)/newer.db"
  for path in [older, newer] {
    try SQLiteConnection(opening: path, as: .create).execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
  }
  try SQLiteConnection(opening: newer, as: .readWrite).execute("INSERT INTO notes VALUES(1, 'a'), (2, 'b')")

  let difference = try DatabaseComparison.run(older: older, newer: newer)
  let incoming = try IncomingChanges(
    key: LedgerKey(sender: "", id: KSUID.minimum, digest: [UInt8](repeating: 7, count: 32), isRaw: false),
    file: "probe", definitions: difference.tables.map(\.definition), changeset: difference.changeset)
  let connection = try SQLiteConnection(opening: older, as: .readWrite)
  let transaction = try SQLiteTransaction(on: connection)
  let plan = try Receiver.plan(incoming, on: connection, settings: ApplySettings(time: 2_000_000_000_000))
  let result = try plan.apply(in: transaction)
  try transaction.commit()
  print("applied: \(result.counts.inserted) rows, \(try LedgerEntries.count(on: connection)) ledger entry")
}

try ship(in: CommandLine.arguments.last ?? ".")
for library in try LoadedLibraries.paths() { print("library: \(library)") }
