import BuckiaBytes
import SQLiteSchemas

/// A full-text or R-tree index: a virtual table that stores what is written to it, and nothing else.
///
/// Triggers of the indexed tables keep it up to date. See <https://sqlite.org/fts5.html>,
/// <https://sqlite.org/fts3.html>, <https://sqlite.org/rtree.html> and <https://sqlite.org/geopoly.html>.
struct IndexTable: Hashable {
  let name: TableName
  /// The name of the module, in lower case.
  let module: String
  /// The external content of a full-text index: a table or view from which it can be rebuilt. Nil when there is none.
  let content: TableName?

  private static let modules: Set<String> = ["fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly"]

  /// Nil when the virtual table is not an index.
  init?(_ name: TableName, _ definition: VirtualTableDefinition) {
    let module = ASCIIName.folded(definition.module)
    guard Self.modules.contains(module) else { return nil }
    self.name = name
    self.module = module
    let content = module == "fts5" ? definition.fullTextContent : module == "fts4" ? definition.option("content") : nil
    self.content = content.flatMap { $0.isEmpty ? nil : TableName($0) }
  }

  /// The statement that rebuilds the index from its content. See <https://sqlite.org/fts5.html#the_rebuild_command>.
  var rebuildStatement: String { "INSERT INTO main.\(name.quoted)(\(name.quoted)) VALUES ('rebuild')" }
}
