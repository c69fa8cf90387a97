#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The document of a history and its failure: JSON that people can read, and change.
private struct HistoryFile: Codable {
  /// The most bytes that a file may have.
  static let byteLimit = 64 << 20

  var format = 1
  let failure: String
  let seed: UInt64
  let replicas: Int
  let schema: String
  var upgrade: [String]?
  let steps: [Step]
}

extension History {
  /// Writes the history, in the place of a file that is there.
  func write(failing failure: String, to path: String) throws {
    let output = try AtomicFileOutput(at: path, replacing: true)
    try output.write(document(failing: failure))
    try output.publish()
  }

  /// The history as a document, with its failure.
  func document(failing failure: String) throws -> [UInt8] {
    let file = HistoryFile(
      failure: failure, seed: seed, replicas: replicas, schema: schema, upgrade: upgrade, steps: steps)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(file)) + [UInt8(ascii: "\n")]
  }

  /// Reads a history.
  ///
  /// - Throws: `BuckiaError` when it is none that a failure has written.
  init(contentsOf path: String) throws {
    let file: HistoryFile
    do {
      guard let bytes = try PosixFile(reading: path).contents(limit: HistoryFile.byteLimit) else {
        throw BuckiaError(.unsupported, "no history is this large", path: path)
      }
      file = try JSONDecoder().decode(HistoryFile.self, from: Data(bytes))
    } catch let error as DecodingError {
      throw BuckiaError(.unsupported, "this is no history of a simulation: \(error)", path: path)
    } catch {
      throw BuckiaError.wrapped(error)
    }
    guard file.format == 1, file.steps.allSatisfy(\.isPossible) else {
      throw BuckiaError(
        .unsupported, "this is no history of a simulation: it has another format, or a group without files", path: path)
    }
    self.init(seed: file.seed, schema: file.schema, upgrade: file.upgrade ?? [], replicas: file.replicas)
    steps = file.steps
  }
}

extension Step {
  /// False if files are to be applied in groups without files.
  fileprivate var isPossible: Bool {
    if case .receive(let reception) = action { reception.groups.allSatisfy { $0 > 0 } } else { true }
  }
}
