/// The type of a b-tree page. The raw value is the first byte of the page's header.
enum BTreePageType: UInt8, Sendable {
  /// An interior page of an index or a WITHOUT ROWID table. Its cells hold rows, too.
  case indexInterior = 2
  /// An interior page of a rowid table.
  case tableInterior = 5
  /// A leaf page of an index or a WITHOUT ROWID table.
  case indexLeaf = 10
  /// A leaf page of a rowid table.
  case tableLeaf = 13

  /// True if pages of this type have no children.
  var isLeaf: Bool { self == .indexLeaf || self == .tableLeaf }
  /// True if the b-tree is that of a rowid table.
  var isTable: Bool { self == .tableInterior || self == .tableLeaf }
}

/// A b-tree page, decoded in place. See <https://sqlite.org/fileformat2.html#b_tree_pages>.
///
/// Every access is checked against the bounds of the page. The bytes must outlive the value.
struct BTreePage {
  let number: Int
  let kind: BTreePageType
  let cellCount: Int
  /// The usable bytes of the page.
  let bytes: UnsafeRawBufferPointer
  /// The offset of the cell pointer array.
  private let pointers: Int
  /// The most payload bytes that are stored on the page without overflow, X in the file format.
  private let localLimit: Int
  /// The fewest payload bytes that are stored on the page when some overflow, M in the file format.
  private let localMinimum: Int

  /// The offset of the b-tree page header. On page 1 it follows the database header.
  static func headerOffset(of page: Int) -> Int { page == 1 ? DatabaseHeader.byteCount : 0 }

  /// - Parameters:
  ///   - number: The page number.
  ///   - bytes: The whole page.
  ///   - usableSize: The usable size in bytes.
  /// - Throws: `DatabaseFileError` with `badPage`.
  init(_ number: Int, _ bytes: UnsafeRawBufferPointer, usableSize: Int) throws(DatabaseFileError) {
    let header = Self.headerOffset(of: number)
    guard let kind = BTreePageType(rawValue: bytes[header]) else {
      throw DatabaseFileError(.badPage, page: number, "the page is not a b-tree page")
    }
    self.number = number
    self.kind = kind
    self.bytes = UnsafeRawBufferPointer(rebasing: bytes[..<usableSize])
    cellCount = bytes.number16(at: header + 3)
    pointers = header + (kind.isLeaf ? 8 : 12)
    guard pointers + 2 * cellCount <= usableSize else {
      throw DatabaseFileError(.badPage, page: number, "the page claims \(cellCount) cells, more than fit")
    }
    localLimit = kind.isTable ? usableSize - 35 : (usableSize - 12) * 64 / 255 - 23
    localMinimum = (usableSize - 12) * 32 / 255 - 23
  }

  private func fault(_ cell: Int) -> DatabaseFileError {
    DatabaseFileError(.badCell, page: number, "cell \(cell) extends beyond the page")
  }

  /// The offset of a cell.
  @inline(__always)
  private func start(of cell: Int) throws(DatabaseFileError) -> Int {
    let offset = bytes.number16(at: pointers + 2 * cell)
    guard offset >= pointers + 2 * cellCount, offset + 4 <= bytes.count else { throw fault(cell) }
    return offset
  }

  /// The left child of a cell of an interior page; the right-most child for the index `cellCount`.
  func child(_ index: Int) throws(DatabaseFileError) -> Int {
    if index == cellCount { return Int(bytes.number32(at: pointers - 4)) }
    return Int(bytes.number32(at: try start(of: index)))
  }

  /// The greatest rowid below a child of an interior page of a table, but the right-most child.
  func separator(_ index: Int) throws(DatabaseFileError) -> Int64 {
    var position = try start(of: index) + 4
    guard let rowID = bytes.varint(at: &position) else { throw fault(index) }
    return Int64(bitPattern: rowID)
  }

  /// The bytes of the page that a cell takes.
  func extent(ofCell index: Int) throws(DatabaseFileError) -> Range<Int> {
    let start = try start(of: index)
    if kind == .tableInterior {
      var end = start + 4
      guard bytes.varint(at: &end) != nil else { throw fault(index) }
      return start..<end
    }
    let cell = try cell(index)
    return start..<max(start + 4, cell.local.upperBound + (cell.overflowBytes > 0 ? 4 : 0))
  }

  /// Requires that cells and free blocks take the bytes that the page's header says they take.
  ///
  /// - Throws: `DatabaseFileError` with `badPage` or `badCell`.
  func checkSpace() throws(DatabaseFileError) {
    func damaged(_ what: String) -> DatabaseFileError { DatabaseFileError(.badPage, page: number, what) }
    let header = Self.headerOffset(of: number)
    let content = bytes.number16(at: header + 5)
    let start = content == 0 ? 65_536 : content
    guard start >= pointers + 2 * cellCount, start <= bytes.count else { throw damaged("its cells begin nowhere") }
    var taken: [Range<Int>] = []
    for index in 0..<cellCount { taken.append(try extent(ofCell: index)) }
    var block = bytes.number16(at: header + 1)
    while block != 0 {
      guard block >= start, block + 4 <= bytes.count else { throw damaged("a free block is not on the page") }
      let (next, size) = (bytes.number16(at: block), bytes.number16(at: block + 2))
      guard size >= 4, block + size <= bytes.count, next == 0 || next > block + size else {
        throw damaged("its free blocks are not in order")
      }
      taken.append(block..<block + size)
      block = next
    }
    taken.sort { $0.lowerBound < $1.lowerBound }
    var (end, fragments) = (start, 0)
    for place in taken {
      guard place.lowerBound >= end else { throw damaged("two cells or free blocks have the same bytes") }
      fragments += place.lowerBound - end
      end = place.upperBound
    }
    guard fragments + bytes.count - end == Int(bytes[header + 7]) else {
      throw damaged("its header has another number of unused bytes")
    }
  }

  /// A cell that has a payload.
  struct Cell {
    /// The rowid; 0 in an index b-tree.
    var rowID: Int64 = 0
    /// The size of the whole payload in bytes.
    var payloadBytes = 0
    /// The part of the payload that is stored on this page.
    var local = 0..<0
    /// The first overflow page; 0 when there is none.
    var overflow = 0
    /// The part of the payload that is stored on overflow pages, in bytes.
    var overflowBytes: Int { payloadBytes - local.count }
  }

  /// Decodes a cell of any page but an interior table page, whose cells have no payload.
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
