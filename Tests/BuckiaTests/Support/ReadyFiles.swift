import BuckiaApply
import SQLiteConnections

/// A source of files that are verified already, or cannot be read.
final class ReadyFiles: IncomingFileSource {
  private final class Reader: IncomingFileReader {
    private var files: ArraySlice<IncomingFile>

    init(_ files: ArraySlice<IncomingFile>) { self.files = files }

    func wait() {}
    func next() -> IncomingFile? { files.popFirst() }
    func stop() {}
  }

  private let files: [IncomingFile]
  private var outcomes: [DiffOutcome] = []

  private init(_ files: [IncomingFile]) { self.files = files }

  var count: Int { files.count }
  func files(_ range: Range<Int>, streams: Bool) -> any IncomingFileReader { Reader(files[range]) }
  func willReceive(_ index: Int) throws {}
  func didReceive(_ files: [ReceivedFile]) { outcomes += files.map(\.outcome) }

  /// Lets a database receive files at a given time.
  ///
  /// - Parameters:
  ///   - files: The files, in their order.
  ///   - path: The database.
  ///   - time: The present time for the receiver, in milliseconds since 1970.
  static func receive(
    _ files: [IncomingFile], into path: String, at time: Int64 = 2_000_000_000_000
  ) throws -> [DiffOutcome] {
    let source = ReadyFiles(files)
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    var receiver = try Receiver(on: connection, settings: ApplySettings(time: time), clock: { time })
    try receiver.receive(source)
    try receiver.end()
    return source.outcomes
  }
}
