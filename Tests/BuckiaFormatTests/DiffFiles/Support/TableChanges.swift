import SQLiteChangesets

/// The changes of one table as a literal.
struct TableChanges: Sendable {
  /// The change of one row.
  enum Row: Sendable {
    case insert([Cell])
    case update(old: [Cell], new: [Cell])
    case delete([Cell])
  }

  /// A value in a row.
  enum Cell: Sendable, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
    ExpressibleByNilLiteral
  {
    case integer(Int64)
    case real(Double)
    case text(String)
    case null
    /// An UPDATE does not touch the column.
    case unchanged

    init(integerLiteral value: Int64) { self = .integer(value) }
    init(floatLiteral value: Double) { self = .real(value) }
    init(stringLiteral value: String) { self = .text(value) }
    init(nilLiteral: ()) { self = .null }
  }

  var table: String
  var key: [UInt8]
  var format = ChangesetFormat.changeset
  var rows: [Row]

  init(_ table: String, key: [UInt8], format: ChangesetFormat = .changeset, _ rows: [Row]) {
    self.table = table
    self.key = key
    self.format = format
    self.rows = rows
  }

  /// The changeset with all of them.
  static func bytes(_ tables: [TableChanges]) -> [UInt8] {
    var writer = ChangesetWriter()
    for table in tables {
      writer.beginTable(ChangesetTable(name: table.table, format: table.format, keyFlags: table.key))
      for row in table.rows { row.append(to: &writer) }
    }
    return writer.bytes
  }
}

extension TableChanges.Row {
  fileprivate func append(to writer: inout ChangesetWriter) {
    let cells: [TableChanges.Cell]
    switch self {
    case .insert(let new):
      writer.beginChange(.insert)
      cells = new
    case .update(let old, let new):
      writer.beginChange(.update)
      cells = old + new
    case .delete(let old):
      writer.beginChange(.delete)
      cells = old
    }
    for cell in cells {
      switch cell {
      case .integer(let value): writer.append(integer: value)
      case .real(let value): writer.append(real: value)
      case .text(let value): writer.append(text: value)
      case .null: writer.appendNull()
      case .unchanged: writer.appendUndefined()
      }
    }
  }
}
