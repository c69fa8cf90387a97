import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

extension ChangesetInspection {
  /// Checks that the manifest describes exactly these changes.
  ///
  /// - Throws: `DiffFileError` with code `badChangeset` or `contradiction`.
  func checkConsistency(with manifest: Manifest) throws(DiffFileError) {
    guard format != .patchset else {
      throw DiffFileError(
        .badChangeset, "it is a patchset, and a diff file holds a changeset", member: MemberName.changeset)
    }
    guard tables.count == manifest.tables.count else {
      throw Self.contradiction(
        "the changeset changes \(tables.count) tables, the manifest lists \(manifest.tables.count)")
    }
    for (found, claimed) in zip(tables, manifest.tables) { try found.checkConsistency(with: claimed) }
  }

  /// Checks that every table with changes is defined, with the columns and the key of the changes.
  ///
  /// - Throws: `DiffFileError` with code `contradiction`.
  func checkConsistency(with schema: [TableDefinition], keys manifest: Manifest) throws(DiffFileError) {
    let definitions = Dictionary(schema.map { (TableName($0.name), $0) }) { first, _ in first }
    for (found, claimed) in zip(tables, manifest.tables) {
      let name = found.header.name
      let shown = EscapedText.quoted(name)
      guard let table = definitions[TableName(name)], table.name.utf8.elementsEqual(name.utf8) else {
        throw Self.contradiction("the changeset changes \(shown), which schema.json does not define", name)
      }
      guard table.isKeyedByRowID == (claimed.key == .rowid) else {
        throw Self.contradiction("manifest and schema.json disagree on the key of \(shown)", name)
      }
      guard table.changesetColumns.count == found.header.columnCount else {
        throw Self.contradiction(
          "\(shown) has \(found.header.columnCount) columns in the changeset and"
            + " \(table.changesetColumns.count) in schema.json", name)
      }
      // Older SQLite versions mark key columns with 1 whatever their place in the key, so only the set is compared.
      guard table.keyFlags.map({ $0 != 0 }) == found.header.keyFlags.map({ $0 != 0 }) else {
        throw Self.contradiction("\(shown) has another primary key in the changeset than in schema.json", name)
      }
    }
  }

  fileprivate static func contradiction(_ message: String, _ table: String? = nil) -> DiffFileError {
    DiffFileError(.contradiction, message, table: table)
  }
}

extension ChangesetInspection.Table {
  fileprivate func checkConsistency(with claimed: Manifest.Table) throws(DiffFileError) {
    let shown = EscapedText.quoted(header.name)
    guard claimed.name.utf8.elementsEqual(header.name.utf8) else {
      throw ChangesetInspection.contradiction(
        "the changeset changes \(shown) where the manifest lists \(EscapedText.quoted(claimed.name))", header.name)
    }
    guard claimed.columns == header.columnCount else {
      throw ChangesetInspection.contradiction(
        "\(shown) has \(header.columnCount) columns in the changeset and \(claimed.columns) in the manifest",
        header.name)
    }
    if claimed.key == .rowid {
      guard header.isKey(0), !header.keyFlags.dropFirst().contains(where: { $0 != 0 }) else {
        throw ChangesetInspection.contradiction(
          "\(shown) is keyed by rowid in the manifest and by something else in the changeset", header.name)
      }
    }
    let counts =
      [("INSERTs", inserted, claimed.inserted), ("UPDATEs", updated, claimed.updated)]
      + [("DELETEs", deleted, claimed.deleted), ("withdrawals", withdrawn, claimed.withdrawn)]
    for (what, found, said) in counts where found != said {
      throw ChangesetInspection.contradiction(
        "\(shown) has \(found) \(what) in the changeset and \(said) in the manifest", header.name)
    }
  }
}
