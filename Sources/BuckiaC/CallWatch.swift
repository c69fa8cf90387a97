import Buckia
import CBuckia

/// Reports the progress of a call to the program, which can stop the call.
///
/// `@unchecked Sendable`: it is only used in the thread that has called, apart from the cancellation, which has a lock.
final class CallWatch: @unchecked Sendable {
  private let callback: buckia_progress_callback?
  private let context: UnsafeMutableRawPointer?
  private let cancellation: CancellationFlag?
  private var isStopped = false

  init(_ callback: buckia_progress_callback?, _ context: UnsafeMutableRawPointer?, _ cancellation: OpaquePointer?) {
    self.callback = callback
    self.context = context
    self.cancellation = Handle.object(cancellation)
  }

  /// - Throws: `CancellationError` when the call is to stop.
  func check() throws {
    guard !isStopped, cancellation?.isSet != true else { throw CancellationError() }
  }

  /// Lets the program stop a call that has nothing to count.
  func poll() throws {
    tell(about: "") { $0.activity = BUCKIA_WORKING }
    try check()
  }

  /// Tells of a merge.
  func tell(_ progress: MergeProgress) throws {
    switch progress {
    case .comparing(let progress): try tell(progress)
    case .applying(let rows):
      tell(about: "") {
        $0.activity = BUCKIA_APPLYING
        $0.rows = Int64(rows)
      }
      try check()
    }
  }

  /// Tells how many bytes of a file have been read.
  func tell(_ path: String, bytes: Int64) throws {
    tell(about: path) {
      $0.activity = BUCKIA_REWRITING
      $0.bytes = bytes
    }
    try check()
  }

  /// Tells of a comparison.
  func tell(_ progress: DiffProgress) throws {
    tell(about: progress.table) {
      $0.activity = BUCKIA_COMPARING
      $0.rows = Int64(progress.rows)
      $0.bytes = progress.bytes
    }
    try check()
  }

  /// Tells of files that are applied.
  func tell(_ progress: ApplyProgress) throws {
    tell(about: progress.path) {
      $0.activity =
        switch progress.activity {
        case .verifying: BUCKIA_VERIFYING
        case .applying: BUCKIA_APPLYING
        }
      $0.files = Int64(progress.files)
      $0.file_count = Int64(progress.fileCount)
      $0.rows = Int64(progress.rows)
      $0.bytes = progress.bytes
      $0.byte_count = progress.byteCount
    }
    try check()
  }

  /// Reports a checked file. `check` decides if the call stops.
  func tell(_ progress: InspectionProgress) {
    tell(about: progress.path) {
      $0.activity = BUCKIA_VERIFYING
      $0.bytes = Int64(progress.bytes)
      $0.byte_count = Int64(progress.byteCount)
    }
  }

  /// Reports rewritten changes. `check` decides if the call stops.
  func tell(_ progress: RewritingProgress) {
    switch progress {
    case .checking(let progress): tell(progress)
    case .rewriting(let changes, let bytes, let byteCount):
      tell(about: "") {
        $0.activity = BUCKIA_REWRITING
        $0.rows = Int64(changes)
        $0.bytes = Int64(bytes)
        $0.byte_count = Int64(byteCount)
      }
    }
  }

  private func tell(about subject: String, _ fill: (inout buckia_progress) -> Void) {
    guard let callback, !isStopped else { return }
    var progress = buckia_progress()
    fill(&progress)
    subject.withCString {
      progress.subject = $0
      if callback(context, &progress) != 0 { isStopped = true }
    }
  }
}

// `buckia_cancellation` is a `CancellationFlag`: it cancels calls on other threads.

@c @implementation
package func buckia_cancellation_new() -> OpaquePointer? { Handle.give(CancellationFlag()) }

@c @implementation
package func buckia_cancel(_ cancellation: OpaquePointer?) {
  Handle.object(cancellation, as: CancellationFlag.self)?.cancel()
}

@c @implementation
package func buckia_is_cancelled(_ cancellation: OpaquePointer?) -> Bool {
  Handle.object(cancellation, as: CancellationFlag.self)?.isSet ?? false
}

@c @implementation
package func buckia_cancellation_free(_ cancellation: OpaquePointer?) {
  Handle.free(cancellation, as: CancellationFlag.self)
}
