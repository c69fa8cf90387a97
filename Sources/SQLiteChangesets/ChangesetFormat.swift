/// The two formats of the session extension: a changeset carries old values, a patchset only keys and new values.
///
/// The raw value is the byte that opens each table header. See
/// [the changeset format](https://sqlite.org/session/changegroup.html) and
/// [patchsets](https://sqlite.org/session/sqlite3session_patchset.html).
public enum ChangesetFormat: UInt8, Sendable {
  /// `T`: every change holds what its author saw, so conflicts can be told apart and changes inverted.
  case changeset = 0x54
  /// `P`: smaller, but UPDATE and DELETE hold no old values outside the key.
  case patchset = 0x50
}

/// What a change does to its row. The raw value is SQLite's own action code, as written in the bytes.
public enum ChangeOperation: UInt8, Sendable, CaseIterable {
  /// `SQLITE_DELETE`.
  case delete = 9
  /// `SQLITE_INSERT`.
  case insert = 18
  /// `SQLITE_UPDATE`.
  case update = 23
}

/// The byte in front of each value of a record.
public enum ValueKind: UInt8, Sendable {
  /// No value here: an UPDATE leaves this column alone.
  case undefined = 0
  /// A 64-bit big-endian two's complement integer.
  case integer = 1
  /// A 64-bit big-endian IEEE 754 number.
  case real = 2
  /// A length (varint) and that many bytes of UTF-8.
  case text = 3
  /// A length (varint) and that many bytes.
  case blob = 4
  /// SQL NULL, no payload.
  case null = 5
}

/// The header that opens the changes of one table.
public struct ChangesetTable: Equatable, Sendable {
  /// The table's name, decoded as UTF-8 (broken sequences become U+FFFD, so such a name matches no table).
  public let name: String
  /// The format of the changes that follow.
  public let format: ChangesetFormat
  /// One byte a column: 0 outside the primary key, else the column's position in the key, from 1.
  ///
  /// Older SQLite versions write 1 for every key column, so use it as a flag.
  public let keyFlags: [UInt8]

  /// Makes a header.
  public init(name: String, format: ChangesetFormat = .changeset, keyFlags: [UInt8]) {
    self.name = name
    self.format = format
    self.keyFlags = keyFlags
  }

  /// How many columns each record of this table has.
  public var columnCount: Int { keyFlags.count }

  /// Whether the column at `index` (from 0) belongs to the primary key.
  public func isKey(_ index: Int) -> Bool { keyFlags[index] != 0 }
}

/// Bounds of the format that this module enforces, the same as SQLite's own.
package enum ChangesetLimits {
  /// The most columns a table header may announce (`sessionChangesetBufferTblhdr`).
  package static let columns = 65_536
  /// The longest table name in bytes that is accepted.
  package static let nameBytes = 65_536
  /// The most sections, each behind a table header, that are accepted: their places are kept in memory.
  package static let sections = 1 << 20
  /// The longest text or blob in bytes: SQLite's `SQLITE_MAX_LENGTH` never exceeds 2^31 - 1.
  package static let valueBytes = 0x7fff_ffff
}
