import Buckia
import BuckiaBenchmarks

/// A program that makes calls and says how many seconds each took.
struct HostProgram {
  /// The format of the files that a host writes and applies.
  enum Format {
    case diffFile
    case geodiff
  }

  let name: ImplementationName
  let format: Format
  /// True if it is Buckia in another language.
  var isSubject: Bool { format == .diffFile && name != .fromSwift }
  private let call: ([String], Int) throws -> [Double]

  /// Makes a host.
  ///
  /// - Parameter call: Gets the arguments of the command, as `Benchmarks/Peers/peer.h` has them, and the number of calls
  ///   that they ask for.
  init(_ name: ImplementationName, _ format: Format = .diffFile, call: @escaping ([String], Int) throws -> [Double]) {
    self.name = name
    self.format = format
    self.call = call
  }

  /// Makes a host that is a process of its own.
  ///
  /// - Parameter process: The program with the command, and whatever comes before it.
  init(_ name: ImplementationName, _ format: Format = .diffFile, process: ChildProcess) {
    self.init(name, format) { try ChildProcess(process.program, process.arguments + $0).seconds($1) }
  }

  /// Writes what turns one database into the other into each of some files.
  ///
  /// - Returns: How many seconds each call took.
  /// - Throws: `BuckiaError` with `otherProgram` when the program fails.
  func diff(from older: String, to newer: String, home: String, outputs: [String]) throws -> [Double] {
    try call([older, newer, home] + outputs, outputs.count)
  }

  /// Applies a file to each of some databases.
  ///
  /// - Returns: How many seconds each call took.
  /// - Throws: `BuckiaError` with `otherProgram` when the program fails.
  func apply(_ file: String, home: String, to databases: [String]) throws -> [Double] {
    try call([file, home] + databases, databases.count)
  }
}

extension ImplementationName {
  static let fromSwift: ImplementationName = "Buckia, from Swift"
  static let fromC: ImplementationName = "Buckia, from C"
  static let pythonPackage: ImplementationName = "Buckia's Python package"
  static let extensionFromC: ImplementationName = "Buckia's extension, from C"
  static let extensionFromPython: ImplementationName = "Buckia's extension, from Python"
}
