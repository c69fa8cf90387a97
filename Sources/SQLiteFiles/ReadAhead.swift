import Dispatch

/// Reads a file from one end to the other in a thread of its own, some pieces ahead of whoever uses them.
///
/// Nobody else may read from the same source meanwhile: SQLite's file handles belong to one thread at a time.
final class ReadAhead: @unchecked Sendable {
  private struct Piece {
    let buffer: UnsafeMutableRawBufferPointer
    var count = 0
    var failure: (any Error)?
  }

  private static let slotCount = 3
  private let pages: DatabasePages
  private let pagesPerPiece: Int
  private let pieceCount: Int
  // A slot is handed from one thread to the other by the semaphores, so no lock is needed.
  private let slots: UnsafeMutableBufferPointer<Piece>
  private let free = DispatchSemaphore(value: 0)
  private let full = DispatchSemaphore(value: 0)
  private let isDone = DispatchSemaphore(value: 0)
  /// How many pieces have been asked for.
  private var taken = 0
  /// Set before a signal to the reading thread, which looks at it after one.
  private var isStopped = false

  /// Begins to read; `stop()` must follow in any case.
  init(_ pages: DatabasePages, pagesPerPiece: Int, pieceCount: Int) {
    self.pages = pages
    self.pagesPerPiece = pagesPerPiece
    self.pieceCount = pieceCount
    slots = .allocate(capacity: Self.slotCount)
    for place in slots.indices {
      slots.initializeElement(
        at: place,
        to: Piece(buffer: .allocate(byteCount: pagesPerPiece * pages.header.pageSize, alignment: 4_096)))
    }
    // The semaphores are back at their first values before they go: libdispatch takes anything else for a mistake.
    for _ in 0..<Self.slotCount { free.signal() }
    DispatchQueue(label: "buckia.readahead").async { self.readAll() }
  }

  deinit {
    for slot in slots { slot.buffer.deallocate() }
    slots.deinitialize()
    slots.deallocate()
  }

  private func readAll() {
    defer { isDone.signal() }
    for piece in 0..<pieceCount {
      free.wait()
      if isStopped { return }
      let slot = piece % Self.slotCount
      do {
        slots[slot].count = try pages.readFile(from: 1 + piece * pagesPerPiece, into: slots[slot].buffer)
      } catch {
        slots[slot].failure = error
      }
      full.signal()
      if slots[slot].failure != nil { return }
    }
  }

  /// The next piece; good until the one after it is asked for. There must be one.
  ///
  /// - Throws: What the source has thrown.
  func next() throws -> UnsafeRawBufferPointer {
    if taken > 0 { free.signal() }
    full.wait()
    let slot = slots[taken % Self.slotCount]
    taken += 1
    if let failure = slot.failure { throw failure }
    return UnsafeRawBufferPointer(rebasing: slot.buffer[..<slot.count])
  }

  /// Ends the reading thread.
  func stop() {
    isStopped = true
    free.signal()
    isDone.wait()
  }
}
