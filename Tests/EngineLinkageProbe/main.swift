// Uses the engine for something real, then prints the shared libraries this process has loaded, one a line.
//
// The linker drops libraries nobody calls, so an import alone would prove nothing: what is used here is what counts.
import BuckiaEngine
import BuckiaKSUID
import SQLiteChangesets
import SQLiteConnections

#if canImport(Darwin)
  import Darwin
#endif

let connection = try SQLiteConnection(opening: ":memory:", as: .create)
try connection.execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT); INSERT INTO notes VALUES(1, 'a')")
let options = DiffOptions(method: .rows)
print("engine: SQLite \(SQLiteConnection.libraryVersion), \(options.tables?.count ?? 0) tables, \(KSUID.maximum)")

for library in try loadedLibraries() { print("library: \(library)") }

#if canImport(Darwin)
  func loadedLibraries() throws -> [String] {
    (0..<_dyld_image_count()).compactMap { index in
      _dyld_get_image_name(index).map { String(cString: $0) }
    }
  }
#else
  /// The files mapped into this process. SQLite reads the list for us, as bytes: Swift's own library cannot read files.
  func loadedLibraries() throws -> [String] {
    var paths: Set<String> = []
    for line in try lines(of: "/proc/self/maps") {
      let fields = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
      if fields.count == 6, fields[5].contains(".so") { paths.insert(String(fields[5])) }
    }
    return paths.sorted()
  }
#endif
