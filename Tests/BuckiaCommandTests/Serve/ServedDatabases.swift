import Foundation
import Testing

/// Ben's database before and after Anna's diff file is applied to it.
enum ServedDatabases {
  /// Ben's database, and Anna's diff file in his inbound folder. Both people changed the database: notes 1 to 3 and
  /// both tags are in conflict, note 4 is not.
  static func apart() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "old.db",
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, stars REAL, photo BLOB);
      CREATE TABLE tags(name TEXT PRIMARY KEY, n);
      INSERT INTO notes VALUES (1, 'a', 1, x'01'), (2, 'b', 2, x'02'), (3, 'c', 3, x'03'), (4, 'd', 4, x'04');
      INSERT INTO tags VALUES ('x', 1), ('y', 2)
      """)
    for name in ["new.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql("new.db", "UPDATE notes SET title = '</script>Anna'; UPDATE tags SET n = 10")
    try bench.sql(
      "ben.db",
      "UPDATE notes SET title = 'Ben' WHERE id < 3; DELETE FROM notes WHERE id = 3; UPDATE tags SET n = 20")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound"]).status == 0)
    return bench
  }

  /// The same with Anna's file applied: conflicts 1 to 5, all open.
  static func inConflict() throws -> Workbench {
    let bench = try apart()
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    return bench
  }
}
