import BuckiaBenchmarks
import Foundation

/// The programs that make one kind of call, with Buckia in several languages and with pygeodiff, as far as they are
/// there.
struct Hosts {
  private(set) var all: [HostProgram]
  /// The versions, and which are missing.
  private(set) var notes: [String] = []

  /// Takes some.
  init(_ all: [HostProgram]) { self.all = all }

  /// Looks for them, and compiles those in C.
  ///
  /// `BUCKIA_BENCH_LIBRARY` names the folder of the C library and `BUCKIA_BENCH_EXTENSION` the file of the extension.
  /// The programs in C lie beside the script that `BUCKIA_BENCH_PEERS` names.
  ///
  /// - Parameters:
  ///   - call: What they are to do.
  ///   - folder: Where the compiled programs go.
  /// - Throws: `BuckiaError` with `otherProgram` when a program does not compile, or Python's script fails.
  static func find(
    for call: HostCall, in folder: ScratchFolder, environment: [String: String] = ProcessInfo.processInfo.environment
  ) throws -> Hosts {
    var hosts = Hosts([
      HostProgram(.fromSwift) { arguments, count in
        let suite = try ChildProcess.path(of: "BuckiaBenchmarkSuite")
        return try ChildProcess(suite, ["call", call.rawValue] + arguments).seconds(count)
      }
    ])
    func built(_ name: String) -> String? {
      environment[name].flatMap { FileManager.default.fileExists(atPath: $0) ? $0 : nil }
    }
    let library = built("BUCKIA_BENCH_LIBRARY")
    let loadable = built("BUCKIA_BENCH_EXTENSION")
    if library == nil { hosts.notes.append("The C library is not built (make library), so it was not measured.") }
    if loadable == nil { hosts.notes.append("The extension is not built (make extension), so it was not measured.") }
    try hosts.addThoseInC(call, library: library, loadable: loadable, script: built("BUCKIA_BENCH_PEERS"), in: folder)
    try hosts.addThoseInPython(call, loadable: loadable, python: PythonPeer.find(in: environment))
    return hosts
  }

  private mutating func addThoseInC(
    _ call: HostCall, library: String?, loadable: String?, script: String?, in folder: ScratchFolder
  ) throws {
    guard let compiler = ChildProcess.find("cc"), let script else {
      notes.append("There is no cc here, or it is not known where the programs in C are, so they were not measured.")
      return
    }
    let sources = URL(fileURLWithPath: script).deletingLastPathComponent()
    func compiled(_ name: String, _ flags: [String]) throws -> String {
      let program = folder.file(name)
      let source = sources.appendingPathComponent("\(name).c").path
      try ChildProcess(compiler, ["-std=c11", "-D_GNU_SOURCE", "-O2", source, "-o", program] + flags).run()
      return program
    }
    if let library {
      let program = try compiled("peer", ["-I", library, "-L", library, "-lbuckia", "-Wl,-rpath,\(library)"])
      all.append(HostProgram(.fromC, process: ChildProcess(program, [call.rawValue])))
    }
    if let loadable {
      #if canImport(Darwin)
        notes.append("The SQLite of macOS loads no extensions, so the extension was not measured from C.")
      #else
        let program = try compiled("extension", ["-lsqlite3"])
        all.append(HostProgram(.extensionFromC, process: ChildProcess(program, [loadable, call.rawValue])))
      #endif
    }
  }

  private mutating func addThoseInPython(_ call: HostCall, loadable: String?, python: PythonPeer?) throws {
    guard let python else {
      notes.append("There is no Python with apsw and pygeodiff here, so calls from Python were not measured.")
      return
    }
    // A word and a description a line.
    let described = try python.lines("hosts").map { $0.split(separator: " ", maxSplits: 1).map(String.init) }
    func description(of word: String) -> String? { described.first { $0.count == 2 && $0[0] == word }?[1] }
    if let package = description(of: "package") {
      all.append(HostProgram(.pythonPackage, process: python.process(["package-\(call.rawValue)"])))
      notes.append("\(package).")
    } else {
      notes.append("Buckia's Python package is not installed there (make bench-hosts), so it was not measured.")
    }
    if let loadable, let host = description(of: "extension") {
      all.append(HostProgram(.extensionFromPython, process: python.process(["extension-\(call.rawValue)", loadable])))
      notes.append("The extension from Python is loaded by \(host), that from C by the system's SQLite.")
    }
    if let geodiff = description(of: "geodiff") {
      let name: ImplementationName = call == .diff ? .geodiffDiff : .geodiffApply
      all.append(HostProgram(name, .geodiff, process: python.process(["geodiff-\(call.rawValue)-each"])))
      notes.append(
        "\(geodiff) has a format of its own, which it neither compresses nor brings to the disk, and keeps no ledger.")
    }
  }
}
