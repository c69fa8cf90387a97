import SQLiteSchemas

/// A full-text or R-tree index: a virtual table of which SQLite knows that it holds nothing but what was written into it.
///
/// Triggers of the tables it indexes keep it up to date. See <https://sqlite.org/fts5.html>,
/// <https://sqlite.org/fts3.html>, <https://sqlite.org/rtree.html> and <https://sqlite.org/geopoly.html>.
struct IndexTable: Hashable {
  let name: TableName
  /// The name of the module, in lower case.
  let module: String
  /// The table or view that a full-text index takes its text from ("external content"): it can be rebuilt from that.
  let content: TableName?

  private static let modules: Set<String> = ["fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly"]

  /// nil when the virtual table is of another kind.
  init?(_ name: TableName, _ definition: VirtualTableDefinition) {
    let module = ASCIIName.folded(definition.module)
    guard Self.modules.contains(module) else { return nil }
    self.name = name
    self.module = module
    let content = module == "fts5" ? definition.fullTextContent : module == "fts4" ? definition.option("content") : nil
    self.content = content.flatMap { $0.isEmpty ? nil : TableName($0) }
  }

  /// The statement that makes it anew from its content. See <https://sqlite.org/fts5.html#the_rebuild_command>.
  var rebuildStatement: String { "INSERT INTO main.\(name.quoted)(\(name.quoted)) VALUES ('rebuild')" }
}
