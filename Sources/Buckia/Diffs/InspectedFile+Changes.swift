extension InspectedFile {
  /// A change as people see it.
  public struct ShownChange: Sendable {
    /// A column and its value; the value is nil if the change does not contain it.
    ///
    /// For a long text or blob in a change of more than 8 MiB, the value is only a part, and `whole` refers to all of
    /// it.
    public typealias Cell = (column: String, value: ChangesetValue?, whole: LongValue?)
    /// The table.
    public let table: String
    /// What happens to the row.
    public let operation: ChangeOperation
    /// The row's key.
    public let key: [Cell]
    /// The row before; nil for an INSERT. An UPDATE has the key and the old values of changed columns.
    public let old: [Cell]?
    /// The row after; nil for a DELETE. An UPDATE has the new values of changed columns.
    public let new: [Cell]?
  }

  /// Calls `body` with every change, in the order of the file.
  ///
  /// A change takes little memory even if its values are long: see ``LongValue``.
  ///
  /// - Throws: `BuckiaError`; whatever `body` throws.
  public func forEachChange(_ body: (ShownChange) throws -> Void) throws {
    var changes = ChangeIteration(of: self)
    while try changes.next({ change, columns, scan, bytes in
      guard let table = scan.reader.table else { return }
      var key: [ShownChange.Cell] = []
      var old: [ShownChange.Cell] = []
      var new: [ShownChange.Cell] = []
      for index in columns.indices {
        var before = cell(columns[index], scan.reader.old[index], scan, bytes)
        var after = cell(columns[index], scan.reader.new[index], scan, bytes)
        if table.isKey(index) { key.append(before.value == nil ? after : before) }
        try showDifference(&before, &after)
        old.append(before)
        new.append(after)
      }
      try body(
        ShownChange(
          table: table.name, operation: change.operation, key: key, old: change.operation == .insert ? nil : old,
          new: change.operation == .delete ? nil : new))
    }) != nil {}
  }

  private func cell(
    _ column: String, _ value: ValueSlice, _ scan: ChangesetScan, _ bytes: RawSpan
  ) -> ShownChange.Cell {
    (column, ChangesetValue(value, in: bytes), scan.longValue(value).map { LongValue(range: $0, shownFrom: 0) })
  }

  /// The names of the columns; numbers from 1 if the file has no definitions.
  static func columns(of table: ChangesetTable, in schema: [TableDefinition]?) -> [String] {
    let definition = schema?.first { ASCIIName.matches($0.name, table.name) }
    guard let names = definition?.changesetColumns, names.count == table.columnCount else {
      return (1...table.columnCount).map { "column \($0)" }
    }
    return names
  }
}

/// Iterates over the changes of a file.
///
/// Values are not copied: they are slices of the changeset's bytes, and valid for the duration of one closure.
///
/// ```swift
/// var iteration = ChangeIteration(of: file)
/// while try iteration.next({ change, columns, scan, bytes in print(change.operation, columns) }) != nil {}
/// ```
package struct ChangeIteration {
  /// The file.
  package let file: InspectedFile
  private var columns: [String] = []
  private var scan: ChangesetScan
  private var hasBytes = false

  /// Begins before the first change.
  package init(of file: InspectedFile) {
    self.file = file
    scan = ChangesetScan(file.changeset)
  }

  /// Goes on to the next change.
  ///
  /// - Parameter body: Receives the change, the names of its columns (numbers from 1 if the file has no definitions), a
  ///   scan with its table and values, and the bytes of these. It must not keep the bytes.
  /// - Returns: The result of `body`; nil after the last change.
  /// - Throws: `BuckiaError`; whatever `body` throws.
  package mutating func next<Result>(
    _ body: (_ change: Change, _ columns: [String], _ scan: ChangesetScan, _ bytes: RawSpan) throws -> Result
  ) throws -> Result? {
    while true {
      if hasBytes, let result = try nextInWindow(body) { return result }
      hasBytes = try BuckiaError.wrapping { try scan.advance() }
      guard hasBytes else { return nil }
    }
  }

  private mutating func nextInWindow<Result>(
    _ body: (Change, [String], ChangesetScan, RawSpan) throws -> Result
  ) throws -> Result? {
    let window = scan.window
    return try BuckiaError.wrapping {
      try window.withBytes { bytes in
        guard let change = try scan.next(in: bytes), let table = scan.reader.table else { return nil }
        if change.startsTable { columns = InspectedFile.columns(of: table, in: file.schema) }
        return try body(change, columns, scan, bytes)
      }
    }
  }

  /// The whole of a long value of which the bytes have only the beginning; nil for other values.
  package static func longValue(_ value: ValueSlice, in scan: ChangesetScan) -> LongValue? {
    scan.longValue(value).map { LongValue(range: $0, shownFrom: 0) }
  }
}

/// A text or blob of a file that is too long to be held in memory for being looked at.
///
/// ```swift
/// try file.forEachChange { change in
///   for cell in change.new ?? [] {
///     guard let whole = cell.whole else { continue }
///     try file.forEachPiece(of: whole) { bytes in output.write(bytes) }
///   }
/// }
/// ```
public struct LongValue: Sendable {
  /// The size in bytes; for text that of its UTF-8.
  public var byteCount: Int { range.count }
  /// The position among the changes of the file.
  let range: Range<Int>
  /// The offset of the shown part, in bytes.
  public let shownFrom: Int
}

extension InspectedFile {
  /// Calls `body` with the bytes of a long value, piece by piece.
  ///
  /// - Parameters:
  ///   - value: One of this file's.
  ///   - body: Receives up to 512 KiB. It must not keep the bytes.
  /// - Throws: `BuckiaError` when a temporary file cannot be read; whatever `body` throws.
  public func forEachPiece(of value: LongValue, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    try BuckiaError.wrapping { try changeset.forEachPiece(value.range, body) }
  }

  /// Reads a part of a long value.
  ///
  /// - Parameters:
  ///   - value: One of this file's.
  ///   - offset: The offset of the first byte.
  ///   - buffer: The buffer to fill.
  /// - Returns: The number of bytes read, which is smaller than the buffer only at the end of the value.
  /// - Throws: `BuckiaError` when a temporary file cannot be read.
  package func read(
    _ value: LongValue, from offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws -> Int {
    guard offset >= 0, offset < value.byteCount else { return 0 }
    let count = min(buffer.count, value.byteCount - offset)
    return try BuckiaError.wrapping {
      try changeset.read(
        into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: value.range.lowerBound + offset)
    }
  }

  /// The size of the shown part of a value that differs far from its beginning, and the size of its part before the
  /// difference.
  private static let shownBytes = 4 << 10
  private static let bytesBefore = 256

  /// Moves the shown parts of both values of a cell to the first difference, if they do not contain it.
  func showDifference(_ before: inout ShownChange.Cell, _ after: inout ShownChange.Cell) throws {
    guard let one = before.whole, let other = after.whole, let shown = before.value, shown == after.value else {
      return
    }
    let isText = if case .text = shown { true } else { false }
    let difference = try firstDifference(one.range, other.range)
    let start = max(0, difference - Self.bytesBefore)
    before = try part(of: before, from: start, isText: isText)
    after = try part(of: after, from: start, isText: isText)
  }

  /// The offset of the first byte in which two ranges of the changes differ, or the length of the shorter one.
  private func firstDifference(_ one: Range<Int>, _ other: Range<Int>) throws -> Int {
    let count = min(one.count, other.count)
    var offset = 0
    while offset < count {
      let size = min(changeset.windowBytes, count - offset)
      let (mine, theirs) = try (
        read(size, at: one.lowerBound + offset), read(size, at: other.lowerBound + offset)
      )
      var common = 0
      while common < size, mine[common] == theirs[common] { common += 1 }
      offset += common
      if common < size { break }
    }
    return offset
  }

  private func part(of cell: ShownChange.Cell, from start: Int, isText: Bool) throws -> ShownChange.Cell {
    guard let whole = cell.whole else { return cell }
    var start = min(start, whole.byteCount)
    var bytes = try read(min(Self.shownBytes, whole.byteCount - start), at: whole.range.lowerBound + start)
    guard isText else { return (cell.column, .blob(bytes), LongValue(range: whole.range, shownFrom: start)) }
    // From the beginning of a character on.
    let inside = start == 0 ? 0 : bytes.prefix(3).prefix { $0 & 0xc0 == 0x80 }.count
    bytes.removeFirst(inside)
    start += inside
    return (
      cell.column, .text(String(decoding: bytes, as: UTF8.self)), LongValue(range: whole.range, shownFrom: start)
    )
  }

  private func read(_ count: Int, at offset: Int) throws -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    defer { buffer.deallocate() }
    return try Array(buffer[..<changeset.read(into: buffer, at: offset)])
  }
}

extension InspectedFile {
  /// A value of a change in the bytes of the file: text as bytes, even if they are not UTF-8.
  package enum StoredValue {
    case null
    case integer(Int64)
    case real(Double)
    case text([UInt8])
    case blob([UInt8])
  }

  /// A column with a value in a change.
  package struct StoredCell {
    /// The change, counted from 1.
    package let position: Int64
    /// The table.
    package let table: String
    /// What happens to the row.
    package let operation: ChangeOperation
    /// The column.
    package let column: String
    /// True if the column is part of the key.
    package let isKey: Bool
    /// The value before; nil if the change has none.
    package let old: StoredValue?
    /// The value after; nil if the change has none.
    package let new: StoredValue?
  }

  /// Calls `body` with every value, in the order of the file. Each value is whole in memory.
  ///
  /// - Throws: `BuckiaError`; whatever `body` throws.
  package func forEachStoredCell(_ body: (StoredCell) throws -> Void) throws {
    var changes = ChangeIteration(of: self)
    var position: Int64 = 0
    while try changes.next({ change, columns, scan, bytes in
      guard let table = scan.reader.table else { return }
      position += 1
      for index in columns.indices {
        let old = try stored(scan.reader.old[index], scan, bytes)
        let new = try stored(scan.reader.new[index], scan, bytes)
        guard old != nil || new != nil else { continue }
        try body(
          StoredCell(
            position: position, table: table.name, operation: change.operation, column: columns[index],
            isKey: table.isKey(index), old: old, new: new))
      }
    }) != nil {}
  }

  private func stored(_ value: ValueSlice, _ scan: ChangesetScan, _ bytes: RawSpan) throws -> StoredValue? {
    switch value.kind {
    case .undefined: nil
    case .null: .null
    case .integer: .integer(value.integer(in: bytes))
    case .real: .real(value.real(in: bytes))
    case .text: .text(try payload(of: value, scan, bytes))
    case .blob: .blob(try payload(of: value, scan, bytes))
    }
  }

  private func payload(of value: ValueSlice, _ scan: ChangesetScan, _ bytes: RawSpan) throws -> [UInt8] {
    guard let range = scan.longValue(value) else {
      return bytes.array(value.payloadRange)
    }
    var payload: [UInt8] = []
    payload.reserveCapacity(range.count)
    try changeset.forEachPiece(range) { payload.append(contentsOf: $0) }
    return payload
  }
}
