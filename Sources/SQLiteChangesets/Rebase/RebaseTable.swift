import BuckiaBytes

/// What the definition of a table says that its changes do not, as far as rebasing needs it.
///
/// Columns are numbered as in the changes.
package struct RebaseTable: Sendable {
  /// How a column compares text. See <https://sqlite.org/datatype3.html#collating_sequences>.
  package enum Collation: Sendable {
    case binary, noCase, rightTrim
  }

  /// A foreign key.
  package struct Reference: Sendable {
    /// The columns of this table, the child.
    package let columns: [Int]
    /// The parent table.
    package let parent: String
    /// The columns of the parent that they refer to.
    package let parentColumns: [Int]

    /// Creates a foreign key.
    package init(columns: [Int], parent: String, parentColumns: [Int]) {
      self.columns = columns
      self.parent = parent
      self.parentColumns = parentColumns
    }
  }

  /// The table's name.
  package let name: String
  /// The collating sequence of each column.
  package let collations: [Collation]
  /// The UNIQUE constraints, each a list of columns.
  package let unique: [[Int]]
  /// The foreign keys.
  package let references: [Reference]
  /// The column that alone is the key and holds integers that each copy of the database gives out by itself.
  package let integerKey: Int?
  /// The greatest key that is known to be in use.
  package let greatestKey: Int64?

  /// Creates a description.
  package init(
    name: String, collations: [Collation], unique: [[Int]] = [], references: [Reference] = [], integerKey: Int? = nil,
    greatestKey: Int64? = nil
  ) {
    self.name = name
    self.collations = collations
    self.unique = unique
    self.references = references
    self.integerKey = integerKey
    self.greatestKey = greatestKey
  }

  func collation(of column: Int) -> Collation { collations.indices.contains(column) ? collations[column] : .binary }
}

extension [RebaseTable] {
  /// The description of the table that a header names.
  func table(named name: String) -> RebaseTable? { first { ASCIIName.matches($0.name, name) } }
}

extension ValueSlice {
  /// Appends bytes that are the same for values which SQLite takes for equal, and for no others.
  func appendComparable(_ collation: RebaseTable.Collation, in bytes: RawSpan, to output: inout [UInt8]) {
    output.append(kind.rawValue)
    switch kind {
    case .undefined, .null: break
    case .integer: Self.append(bits(in: bytes), to: &output)
    case .real:
      // A number has one form, whether it is stored as an integer or as a real.
      if let integer = Int64(exactly: real(in: bytes)) {
        output[output.count - 1] = ValueKind.integer.rawValue
        Self.append(UInt64(bitPattern: integer), to: &output)
      } else {
        Self.append(bits(in: bytes), to: &output)
      }
    case .blob:
      Self.append(UInt64(count), to: &output)
      output += bytes.array(payloadRange)
    case .text:
      var text = bytes.array(payloadRange)
      switch collation {
      case .binary: break
      case .noCase: text = text.map(ASCIIName.folded)
      case .rightTrim: while text.last == UInt8(ascii: " ") { text.removeLast() }
      }
      Self.append(UInt64(text.count), to: &output)
      output += text
    }
  }

  private static func append(_ number: UInt64, to output: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { output.append(contentsOf: $0) }
  }
}
