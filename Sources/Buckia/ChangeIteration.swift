import SQLiteChangesets

/// Goes through the changes of a file one at a time, as whoever uses it asks for them.
///
/// Values are not copied: they are slices of the bytes that a change stands in, and good for the length of one closure.
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
  /// - Parameter body: Gets the change, the names of its columns, which are numbers from 1 where the file has no
  ///   definitions, a scan that has its table and its values, and the bytes these are in. It must not keep the bytes.
  /// - Returns: What `body` returns; nil behind the last change.
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

  /// Where all of a long value is, of which the bytes have only the beginning; nil for other values.
  package static func longValue(_ value: ValueSlice, in scan: ChangesetScan) -> LongValue? {
    scan.longValue(value).map { LongValue(range: $0, shownFrom: 0) }
  }
}
