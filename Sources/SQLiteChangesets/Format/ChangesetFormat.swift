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
public enum ChangeOperation: UInt8, Codable, Sendable, CaseIterable {
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

  /// True if the column at `index` (from 0) belongs to the primary key.
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

/// The header that opens the changes of a table, and where it lies in the bytes.
struct ChangesetHeader {
  let table: ChangesetTable
  let range: Range<Int>
  /// The bytes of the name, without the NUL that ends it.
  let nameRange: Range<Int>

  /// Reads the header that stands at `position` and moves on behind it.
  ///
  /// - Throws: `ChangesetError` when no whole header stands there; `position` stays then.
  init(reading bytes: RawSpan, at position: inout Int) throws(ChangesetError) {
    let start = position
    guard start < bytes.byteCount, let format = ChangesetFormat(rawValue: bytes.byte(at: start)) else {
      throw ChangesetError(.unknownOperation, offset: start)
    }
    var cursor = start + 1
    let columns = try readVarint(at: &cursor, in: bytes)
    guard columns > 0, columns <= UInt64(ChangesetLimits.columns) else {
      throw ChangesetError(.badColumnCount, offset: start)
    }
    let count = Int(columns)
    guard bytes.byteCount - cursor >= count else { throw ChangesetError(.truncated, offset: start) }
    let keyFlags = bytes.array(cursor..<(cursor + count))
    guard keyFlags.contains(where: { $0 != 0 }) else { throw ChangesetError(.missingKey, offset: start) }
    cursor += count
    let nameStart = cursor
    while cursor < bytes.byteCount, bytes.byte(at: cursor) != 0 {
      guard cursor - nameStart < ChangesetLimits.nameBytes else { throw ChangesetError(.badLength, offset: start) }
      cursor += 1
    }
    guard cursor < bytes.byteCount else { throw ChangesetError(.truncated, offset: start) }
    let name = String(decoding: bytes.array(nameStart..<cursor), as: UTF8.self)
    position = cursor + 1
    range = start..<position
    nameRange = nameStart..<cursor
    table = ChangesetTable(name: name, format: format, keyFlags: keyFlags)
  }
}

/// Why bytes are not a changeset, with the place where reading stopped.
public struct ChangesetError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of damage that are told apart.
  public enum Code: String, Sendable {
    /// The bytes end inside a header, a change or a value.
    case truncated
    /// A byte that opens a change is no operation and no table header.
    case unknownOperation
    /// A value has a kind byte outside 0…5.
    case unknownValueKind
    /// A table header announces no columns or more than 65,536.
    case badColumnCount
    /// A table header marks no column as part of the key.
    case missingKey
    /// A length does not fit its bounds.
    case badLength
    /// A change comes before the first table header.
    case changeBeforeTable
    /// Changeset and patchset tables are mixed in one input.
    case mixedFormats
    /// A value that this operation needs is absent, or one that it must not have is there.
    case misplacedValue
    /// Two inputs describe one table with different columns or keys.
    case incompatibleTables
    /// The operation needs old values, which a patchset does not have.
    case needsChangeset
    /// The changes go back and forth between tables more often than anything real does.
    case tooManySections
  }

  /// What is wrong.
  public let code: Code
  /// The offset in bytes, from 0, of the element that is wrong.
  public let offset: Int
  /// The table in whose changes it was found, when known.
  public let table: String?

  /// Makes an error.
  public init(_ code: Code, offset: Int, table: String? = nil) {
    self.code = code
    self.offset = offset
    self.table = table
  }

  /// A sentence for people: what is wrong and where.
  public var description: String {
    let place = table.map { "at byte \(offset), in the changes of table \"\($0)\"" } ?? "at byte \(offset)"
    let what =
      switch code {
      case .truncated: "the changeset ends too early"
      case .unknownOperation: "this is no change and no table header"
      case .unknownValueKind: "a value has an unknown kind"
      case .badColumnCount: "a table header announces an impossible number of columns"
      case .missingKey: "a table header names no key column"
      case .badLength: "a length is out of bounds"
      case .changeBeforeTable: "a change stands before any table header"
      case .mixedFormats: "changeset and patchset tables are mixed"
      case .misplacedValue: "a value is missing, or stands where none may be"
      case .incompatibleTables: "a table appears with different columns or another key"
      case .tooManySections: "the changes go back and forth between tables too often"
      case .needsChangeset: "this needs a changeset, and a patchset has no old values"
      }
    return "\(what) (\(place))"
  }
}
