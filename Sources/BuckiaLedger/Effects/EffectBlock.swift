import SQLiteChangesets

/// One row of the table `buckia_effect`: what some diffs did, or a stretch of what one of them did, compressed.
package struct EffectBlock: Sendable {
  /// How many bytes of changes make a good block: enough to compress them well, and little to decompress for one diff.
  package static let usualSize = 256 << 10

  /// What one diff did, or a stretch of it.
  package struct Piece: Sendable {
    /// What a piece is the beginning of.
    package enum Beginning: Int64, Sendable {
      /// The diff.
      case diff = 0
      /// A part of a diff that was held.
      case part = 1
      /// Nothing: it goes on with what the piece before it tells.
      case none = 2
      /// A part of a diff that was held, and of which is not known what it did.
      case unknown = 3
    }

    /// The diff's ledger entry.
    package var entry: Int64
    /// What it begins.
    package var beginning: Beginning
    /// The tables of the part that ends with this piece; nil where the next piece goes on with it.
    package var tables: [AppliedEffects.Table]?
    /// The changes, as a changeset; those of a piece that goes on with another follow that one's.
    package var changes: [UInt8]

    /// Makes a piece.
    package init(entry: Int64, _ beginning: Beginning, of tables: [AppliedEffects.Table]?, changes: [UInt8]) {
      self.entry = entry
      self.beginning = beginning
      self.tables = tables
      self.changes = changes
    }
  }

  /// The least and the greatest ledger entry of its pieces.
  let entries: ClosedRange<Int64>
  /// How many bytes of changes it has, before they are compressed.
  package let size: Int
  /// The pieces, as one zstd frame.
  let contents: [UInt8]

  /// Compresses pieces.
  ///
  /// - Parameter pieces: At least one.
  package init(_ pieces: [Piece]) throws {
    let numbers = pieces.map(\.entry)
    entries = (numbers.min() ?? 0)...(numbers.max() ?? 0)
    size = pieces.reduce(0) { $0 + $1.changes.count }
    var writer = ChangesetWriter()
    for piece in pieces {
      writer.append(integer: piece.entry)
      writer.append(integer: piece.beginning.rawValue)
      writer.append(integer: Int64(piece.tables?.count ?? -1))
      for table in piece.tables ?? [] {
        writer.append(text: table.name)
        writer.append(integer: Int64(table.columns.count))
        for column in table.columns { writer.append(text: column) }
      }
      writer.append(blob: piece.changes)
    }
    contents = try ZstdBlock.compressed(writer.bytes)
  }

  /// The pieces, decompressed.
  package func pieces() throws -> [Piece] { try Self.pieces(in: contents) }

  /// Reads the pieces of a block.
  ///
  /// - Throws: `ZstdError`, `ChangesetError` when this is none.
  static func pieces(in contents: [UInt8]) throws -> [Piece] {
    let bytes = try ZstdBlock.decompressed(contents)
    var values = try ChangesetValue.record(bytes).compactMap { $0 }[...]
    func next<Value>(_ value: (ChangesetValue) -> Value?) throws -> Value {
      guard let found = values.popFirst().flatMap(value) else {
        throw ChangesetError(.truncated, offset: bytes.count)
      }
      return found
    }
    func integer() throws -> Int64 { try next { if case .integer(let number) = $0 { number } else { nil } } }
    func text() throws -> String { try next { if case .text(let text) = $0 { text } else { nil } } }
    var pieces: [Piece] = []
    while !values.isEmpty {
      let entry = try integer()
      let beginning = try Piece.Beginning(rawValue: integer())
      let tableCount = try integer()
      var tables: [AppliedEffects.Table] = []
      for _ in 0..<max(0, min(tableCount, Int64(values.count))) {
        let name = try text()
        let columnCount = try max(0, min(integer(), Int64(values.count)))
        tables.append(AppliedEffects.Table(name: name, columns: try (0..<columnCount).map { _ in try text() }))
      }
      let changes = try next { if case .blob(let bytes) = $0 { bytes } else { nil } }
      pieces.append(Piece(entry: entry, beginning ?? .unknown, of: tableCount < 0 ? nil : tables, changes: changes))
    }
    return pieces
  }
}
