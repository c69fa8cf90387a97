import Buckia
import BuckiaBenchmarks
import Foundation

/// The other programs that Buckia is compared with, as far as they are installed.
struct Peers {
  /// Buckia's own command line, built with optimisation.
  let buckia: String
  /// `sqldiff`; nil when it is not installed.
  let sqldiff: String?
  /// A Python with apsw and pygeodiff, and the script that runs them; nil when there is none.
  let python: (program: String, script: String)?
  /// The versions, and which programs are missing.
  let remarks: [String]

  /// Looks for them. `BUCKIA_BENCH_PYTHON` and `BUCKIA_BENCH_PEERS` name the Python and the script.
  static func find() throws -> Peers {
    let environment = ProcessInfo.processInfo.environment
    var remarks: [String] = []
    let sqldiff = ChildProcess.find("sqldiff")
    remarks.append(
      sqldiff == nil
        ? "sqldiff is not installed, so it was not measured (Debian's package is sqlite3-tools)."
        : "sqldiff \(version(ofPackage: "sqlite3-tools") ?? "of an unknown version").")
    var python: (String, String)?
    if let program = environment["BUCKIA_BENCH_PYTHON"], let script = environment["BUCKIA_BENCH_PEERS"],
      FileManager.default.isExecutableFile(atPath: program)
    {
      python = (program, script)
      let versions = try ChildProcess(program, [script, "versions"]).run().split(separator: "\n")
      remarks.append(
        "\(versions.joined(separator: ", ")): the library's own work is timed, without Python's start and imports.")
    } else {
      remarks.append("There is no Python with apsw and pygeodiff here, so they were not measured.")
    }
    return Peers(buckia: try ChildProcess.path(of: "buckia"), sqldiff: sqldiff, python: python, remarks: remarks)
  }

  /// The version of an installed Debian package; nil where there is none.
  private static func version(ofPackage name: String) -> String? {
    guard let query = ChildProcess.find("dpkg-query") else { return nil }
    do { return try ChildProcess(query, ["-W", "-f", "${Version}", name]).run() } catch {
      // It was not installed as a package, so the version is unknown.
      return nil
    }
  }

  /// Runs the Python script, which prints how many seconds the work took.
  func seconds(_ arguments: String...) throws -> Double {
    guard let python else { throw BuckiaError(.otherProgram, "there is no Python") }
    let printed = try ChildProcess(python.program, [python.script] + arguments).run()
    guard let seconds = Double(printed.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw BuckiaError(.otherProgram, "\(python.script) \(arguments[0]) did not say how long it took")
    }
    return seconds
  }
}

extension ImplementationName {
  static let buckiaProcess: ImplementationName = "Buckia, whole process"
  static let sqldiff: ImplementationName = "sqldiff --changeset, whole process"
  static let cmp: ImplementationName = "cmp, whole process"
  static let geodiffDiff: ImplementationName = "pygeodiff create_changeset"
  static let geodiffApply: ImplementationName = "pygeodiff apply_changeset"
  static let apswDiff: ImplementationName = "apsw Session.diff"
  static let apswApply: ImplementationName = "apsw Changeset.apply"
}
