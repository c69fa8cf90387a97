import Buckia
import BuckiaBenchmarks
import Foundation

extension ImplementationName {
  fileprivate static let encrypting: ImplementationName = "Buckia, a process that encrypts it"
  fileprivate static let decrypting: ImplementationName = "Buckia, a process that decrypts it"
  fileprivate static let age: ImplementationName = "age, whole process"
}

extension Comparison {
  /// Which way.
  enum Encryption: String, CaseIterable {
    case encrypting, decrypting

    fileprivate var title: String { self == .encrypting ? "Encrypting" : "Decrypting" }
  }

  /// Encrypting a file for one recipient, or decrypting it, compared with `age`.
  ///
  /// - Parameters:
  ///   - rows: The file has 500 bytes for each.
  ///   - bytesPerSecond: The target.
  static func encryption(_ direction: Encryption, rows: Int, bytesPerSecond: Double) -> Comparison {
    let bytes = rows * 500
    return Comparison(
      id: "\(direction.rawValue)-file", title: "\(direction.title) a file of \(Quantity.size(bytes)), whole programs",
      figures: [
        Figure(.value, of: .buckiaProcess, against: nil, target: Double(bytes) / bytesPerSecond),
        Figure(.speed, of: .buckiaProcess, against: .age),
      ]
    ) { folder in
      let buckia = try ChildProcess.path(of: "buckia")
      guard let age = ChildProcess.find("age"), let keygen = ChildProcess.find("age-keygen") else {
        throw BuckiaError(.otherProgram, "there is no age (Debian's package is age)")
      }
      try folder.requireRoom(bytes: 4 * bytes)
      let identity = folder.file("identity")
      try ChildProcess(keygen, ["-o", identity]).run()
      let recipient = try ChildProcess(keygen, ["-y", identity]).run().trimmingCharacters(in: .whitespacesAndNewlines)
      let clear = folder.newFile(".clear")
      try clearText(bytes).write(to: URL(fileURLWithPath: clear))
      let sealed = folder.newFile(".age")
      try ChildProcess(age, ["-r", recipient, "-o", sealed, clear]).run()
      func run(_ name: ImplementationName, _ arguments: @escaping (String) -> ChildProcess) -> Implementation {
        Implementation(name, isSubject: name == .buckiaProcess) { folder in
          let output = folder.newFile(".output")
          return ClosureRun(content: { try content(of: output, direction, by: age, identity, in: folder) }) {
            try arguments(output).run()
            return nil
          }
        }
      }
      switch direction {
      case .encrypting:
        return Workload(
          size: Quantity.size(bytes),
          implementations: [
            run(.buckiaProcess) { ChildProcess(buckia, ["encrypt", clear, "--to", recipient, "-o", $0, "--quiet"]) },
            run(.age) { ChildProcess(age, ["-r", recipient, "-o", $0, clear]) },
          ])
      case .decrypting:
        return Workload(
          size: Quantity.size(bytes),
          implementations: [
            run(.buckiaProcess) {
              ChildProcess(buckia, ["decrypt", sealed, "--identity", identity, "-o", $0, "--quiet"])
            },
            run(.age) { ChildProcess(age, ["-d", "-i", identity, "-o", $0, sealed]) },
          ])
      }
    }
  }

  /// The peak resident memory of a process that encrypts or decrypts a large file.
  ///
  /// - Parameter rows: The file has 1,000 bytes for each.
  static func memory(of direction: Encryption, rows: Int) -> Comparison {
    let bytes = rows * 1_000
    let name: ImplementationName = direction == .encrypting ? .encrypting : .decrypting
    return Comparison(
      id: "memory-\(direction.rawValue)",
      title: "Peak memory, \(direction.rawValue) a file of \(Quantity.size(bytes))", unit: .bytes,
      figures: [Figure(.value, of: name, against: nil, target: Double(64 << 20))]
    ) { folder in
      try folder.requireRoom(bytes: 4 * bytes)
      let key = AgeIdentity()
      let identity = folder.file("identity")
      try Data("\(key.secretText)\n".utf8).write(to: URL(fileURLWithPath: identity))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: identity)
      let clear = folder.newFile(".clear")
      try clearText(bytes).write(to: URL(fileURLWithPath: clear))
      let sealed = folder.newFile(".age")
      try FileEncryption(to: [key.recipient()]).encrypt(clear, to: sealed)
      return Workload(
        size: Quantity.size(bytes),
        implementations: [
          Implementation(name, isSubject: true) { folder in
            let output = folder.newFile(".output")
            return ClosureRun {
              switch direction {
              case .encrypting: try MemoryCommand.peak("encrypt", clear, output, "\(key.recipient())")
              case .decrypting: try MemoryCommand.peak("decrypt", sealed, output, identity)
              }
            }
          }
        ])
    }
  }

  /// Bytes that do not repeat within a mebibyte.
  private static func clearText(_ count: Int) -> Data {
    var random = SeededGenerator(seed: 9)
    let piece = Data((0..<1 << 17).flatMap { _ in withUnsafeBytes(of: random.next(), Array.init) })
    var bytes = Data(capacity: count)
    while bytes.count < count { bytes.append(piece.prefix(count - bytes.count)) }
    return bytes
  }

  /// A hash of the clear text that a run has arrived at.
  private static func content(
    of output: String, _ direction: Encryption, by age: String, _ identity: String, in folder: ScratchFolder
  ) throws -> UInt64 {
    var path = output
    if direction == .encrypting {
      path = folder.newFile(".clear")
      try ChildProcess(age, ["-d", "-i", identity, "-o", path, output]).run()
    }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    return bytes.withUnsafeBytes { words in
      stride(from: 0, to: words.count - 7, by: 8).reduce(UInt64(words.count)) {
        ($0 ^ words.loadUnaligned(fromByteOffset: $1, as: UInt64.self)) &* 0xff51_afd7_ed55_8ccd
      }
    }
  }
}
