/// What a page is. The raw value is the byte that a b-tree page begins with.
public enum BTreePageType: UInt8, Sendable {
  /// An inner page of an index, or of a WITHOUT ROWID table: its cells hold rows, too.
  case indexInterior = 2
  /// An inner page of a table.
  case tableInterior = 5
  /// A leaf of an index, or of a WITHOUT ROWID table.
  case indexLeaf = 10
  /// A leaf of a table.
  case tableLeaf = 13

  /// Whether it has no children.
  public var isLeaf: Bool { self == .indexLeaf || self == .tableLeaf }
  /// Whether rows are found by rowid.
  public var isTable: Bool { self == .tableInterior || self == .tableLeaf }
}

/// A page of a b-tree, read where it lies: <https://sqlite.org/fileformat2.html#b_tree_pages>.
///
/// Every access is checked against the page, whatever stands in it. The bytes must outlive the value.
struct BTreePage {
  let number: Int
  let kind: BTreePageType
  let cellCount: Int
  /// The bytes that are used.
  let bytes: UnsafeRawBufferPointer
  /// Where the array of cell pointers begins.
  private let pointers: Int
  /// The most bytes of a payload that stay on the page, and the fewest where some do not.
  private let localLimit: Int
  private let localMinimum: Int

  /// Where the b-tree's header begins: the first page has the database's before it.
  static func headerOffset(of page: Int) -> Int { page == 1 ? DatabaseHeader.byteCount : 0 }

  /// - Parameters:
  ///   - number: The page's number.
  ///   - bytes: The whole page.
  ///   - usableSize: How much of it is used.
  /// - Throws: `DatabaseFileError` with `badPage`.
  init(_ number: Int, _ bytes: UnsafeRawBufferPointer, usableSize: Int) throws(DatabaseFileError) {
    let header = Self.headerOffset(of: number)
    guard let kind = BTreePageType(rawValue: bytes[header]) else {
      throw DatabaseFileError(.badPage, page: number, "it is no page of a table or an index")
    }
    self.number = number
    self.kind = kind
    self.bytes = UnsafeRawBufferPointer(rebasing: bytes[..<usableSize])
    cellCount = bytes.number16(at: header + 3)
    pointers = header + (kind.isLeaf ? 8 : 12)
    guard pointers + 2 * cellCount <= usableSize else {
      throw DatabaseFileError(.badPage, page: number, "it has no room for the \(cellCount) cells that it is to have")
    }
    localLimit = kind.isTable ? usableSize - 35 : (usableSize - 12) * 64 / 255 - 23
    localMinimum = (usableSize - 12) * 32 / 255 - 23
  }

  private func fault(_ cell: Int) -> DatabaseFileError {
    DatabaseFileError(.badCell, page: number, "cell \(cell) reaches beyond the page")
  }

  /// Where a cell begins.
  @inline(__always)
  private func start(of cell: Int) throws(DatabaseFileError) -> Int {
    let offset = bytes.number16(at: pointers + 2 * cell)
    guard offset >= pointers + 2 * cellCount, offset + 4 <= bytes.count else { throw fault(cell) }
    return offset
  }

  /// The page of the rows before a cell of an inner page; with `cellCount` the one behind them all.
  func child(_ index: Int) throws(DatabaseFileError) -> Int {
    if index == cellCount { return Int(bytes.number32(at: pointers - 4)) }
    return Int(bytes.number32(at: try start(of: index)))
  }

  /// What a cell holds, apart from a child.
  struct Cell {
    /// The rowid; 0 in an index.
    var rowID: Int64 = 0
    /// The length of the whole payload.
    var payloadBytes = 0
    /// The part of it that is on this page.
    var local = 0..<0
    /// The first overflow page; 0 when all of it is here.
    var overflow = 0
  }

  /// Takes a cell with a payload apart: any but that of a table's inner page.
  @inline(__always)
  func cell(_ index: Int) throws(DatabaseFileError) -> Cell {
    var position = try start(of: index)
    if kind == .indexInterior { position += 4 }
    var cell = Cell()
    guard let size = bytes.varint(at: &position), size <= 0x7fff_ffff else { throw fault(index) }
    cell.payloadBytes = Int(size)
    if kind == .tableLeaf {
      guard let rowID = bytes.varint(at: &position) else { throw fault(index) }
      cell.rowID = Int64(bitPattern: rowID)
    }
    if cell.payloadBytes <= localLimit {
      guard position + cell.payloadBytes <= bytes.count else { throw fault(index) }
      cell.local = position..<position + cell.payloadBytes
      return cell
    }
    let surplus = localMinimum + (cell.payloadBytes - localMinimum) % (bytes.count - 4)
    let local = surplus <= localLimit ? surplus : localMinimum
    guard position + local + 4 <= bytes.count else { throw fault(index) }
    cell.local = position..<position + local
    cell.overflow = Int(bytes.number32(at: position + local))
    return cell
  }
}

extension UnsafeRawBufferPointer {
  /// A number of one to nine bytes, seven bits each but for the ninth (<https://sqlite.org/fileformat2.html#varint>); nil
  /// when the bytes end before it does.
  @inline(__always)
  func varint(at position: inout Int) -> UInt64? {
    guard position < count else { return nil }
    let first = self[position]
    position += 1
    if first < 0x80 { return UInt64(first) }
    return longVarint(UInt64(first & 0x7f), at: &position)
  }

  private func longVarint(_ start: UInt64, at position: inout Int) -> UInt64? {
    var value = start
    for _ in 0..<7 {
      guard position < count else { return nil }
      let byte = self[position]
      position += 1
      value = value << 7 | UInt64(byte & 0x7f)
      if byte < 0x80 { return value }
    }
    guard position < count else { return nil }
    value = value << 8 | UInt64(self[position])
    position += 1
    return value
  }
}
