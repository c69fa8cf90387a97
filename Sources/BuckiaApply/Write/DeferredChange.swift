import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A change that a constraint refused, which is tried again after the others of its table. There can be millions.
struct DeferredChange {
  /// The offset of the change among the deferred ones, and two flags in the lowest bits.
  private let packed: Int

  init(offset: Int, _ refusal: SQLiteRefusal, isDecided: Bool) {
    packed = offset << 2 | (refusal.isUniqueness ? 1 : 0) | (isDecided ? 2 : 0)
  }

  /// The offset of the change among the deferred ones.
  var offset: Int { packed >> 2 }
  /// True if another row has a UNIQUE value or the key of the changed row.
  var isUniqueViolation: Bool { packed & 1 != 0 }
  /// True if it met a local row, and the incoming version is to win.
  var isDecided: Bool { packed & 2 != 0 }
}

/// The UNIQUE constraints and indexes of one table beside its key, with a way to look up which row has a value in them.
///
/// Created when the first row of the table violates an index. A number identifies each row: the rowid, or a hash of the
/// key in tables without one.
final class UniqueIndexes {
  /// An index over whole columns: which row blocks a change can be looked up.
  private struct Plain {
    /// Places in the local layout.
    let members: [Int]
    /// `?1…`: the values of the indexed columns. Returns the rows that have them.
    let lookup: PreparedStatement
  }

  private let plain: [Plain]
  /// True if there are further indexes: over expressions or generated columns, or partial ones.
  let hasOpaque: Bool
  /// The places in the layout of all columns that a change can leave a unique place by; nil for any.
  let members: Set<Int>?

  init(_ statements: TableStatements) throws {
    let local = statements.match.local
    let list = "SELECT name, partial FROM pragma_index_list(?1, 'main') WHERE \"unique\" AND origin <> 'pk'"
    let names = try statements.connection.rows(of: list, local.name) { row in
      (row.text(at: 0) ?? "", row.integer(at: 1) != 0)
    }
    var plain: [Plain] = []
    var members: Set<Int> = []
    var hasOpaque = false
    for (name, isPartial) in names {
      var columns: [Int] = []
      var terms: [String] = []
      var isWhole = !isPartial
      let parts = "SELECT name, coll FROM pragma_index_xinfo(?1, 'main') WHERE key"
      try statements.connection.forEachRow(of: parts, binding: [name]) { row in
        if let column = row.text(at: 0).flatMap({ local.column(named: $0) }) {
          columns.append(column + local.columnOffset)
          // The column's affinity applies to the value, as it does when the value is stored.
          terms.append(
            "\(statements.layout[column + local.columnOffset]) = ?\(columns.count) COLLATE \(SQLText.identifier(row.text(at: 1) ?? ""))"
          )
        } else {
          isWhole = false
        }
      }
      guard isWhole, !columns.isEmpty else {
        hasOpaque = true
        continue
      }
      members.formUnion(columns)
      let query =
        "SELECT \(statements.identity) FROM main.\(statements.name.quoted) WHERE \(terms.joined(separator: " AND "))"
      plain.append(
        Plain(members: columns, lookup: PreparedStatement(try statements.connection.prepare(query, isPersistent: true)))
      )
    }
    self.plain = plain
    self.hasOpaque = hasOpaque
    self.members = hasOpaque ? nil : members
  }

  /// The number of the row that blocks another one.
  ///
  /// - Parameters:
  ///   - own: The number of the row itself, when it is in the table.
  ///   - moves: True if the row's value at a place of the layout is to change.
  ///   - bind: Binds the value that the row is to have at a place of the layout; false when it is NULL, which blocks no
  ///     other row.
  /// - Returns: Nil when there is none, as far as can be looked up.
  func occupant(
    besides own: UInt64?, moves: (Int) -> Bool, bind: (Int, borrowing SQLiteStatement, Int) throws -> Bool
  ) throws -> UInt64? {
    for index in plain where index.members.contains(where: moves) {
      let statement = index.lookup
      defer { statement.statement.reset() }
      var isWhole = true
      for (parameter, place) in index.members.enumerated() where isWhole {
        isWhole = try bind(place, statement.statement, parameter)
      }
      guard isWhole else { continue }
      while try statement.statement.step() {
        let number = statement.statement.rowNumber()
        if number != own { return number }
      }
    }
    return nil
  }
}

/// The number that identifies a row while its table is written: the rowid, or a hash of the stored key.
///
/// Two keys can share a hash. Then a change is tried that cannot help, and nothing worse.
extension SQLiteStatement {
  /// Reads the columns that `TableStatements.identity` names.
  func rowNumber(from first: Int = 0) -> UInt64 {
    if columnCount == first + 1, storageClass(at: first) == .integer {
      return UInt64(bitPattern: integer(at: first))
    }
    var hasher = Hasher()
    for column in first..<columnCount {
      hasher.combine(storageClass(at: column).rawValue)
      switch storageClass(at: column) {
      case .null: break
      case .integer: hasher.combine(integer(at: column))
      case .real: hasher.combine(real(at: column).bitPattern)
      case .text: hasher.combine(bytes: textBytes(at: column))
      case .blob: hasher.combine(bytes: blobBytes(at: column))
      }
    }
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }
}
