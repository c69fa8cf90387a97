import BenchmarkRounds
import BuckiaBenchmarks
import Foundation

/// The other programs, as far as they are to be had here.
struct Peers {
  /// Buckia's own command line, built with optimisation.
  let buckia: String
  /// `sqldiff`; nil when it is not installed.
  let sqldiff: String?
  /// A Python with apsw and pygeodiff, and the script that runs them; nil when there is none.
  let python: (program: String, script: String)?
  /// The versions, and who is missing and why.
  let remarks: [String]

  /// Looks for them: `BUCKIA_BENCH_BUCKIA`, `BUCKIA_BENCH_PYTHON` and `BUCKIA_BENCH_PEERS` name the first and the third.
  static func find() throws -> Peers {
    let environment = ProcessInfo.processInfo.environment
    guard let buckia = environment["BUCKIA_BENCH_BUCKIA"], FileManager.default.isExecutableFile(atPath: buckia) else {
      throw BenchmarkError(
        .otherProgram, "BUCKIA_BENCH_BUCKIA does not name the command line; `make bench` builds it and says where it is"
      )
    }
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
    return Peers(buckia: buckia, sqldiff: sqldiff, python: python, remarks: remarks)
  }

  /// The version of an installed Debian package; nil where there is none.
  private static func version(ofPackage name: String) -> String? {
    guard let query = ChildProcess.find("dpkg-query") else { return nil }
    do { return try ChildProcess(query, ["-W", "-f", "${Version}", name]).run() } catch {
      // Installed by other means: the version stays unknown.
      return nil
    }
  }

  /// A run of the Python script that tells the seconds itself.
  func seconds(_ arguments: String...) throws -> Double {
    guard let python else { throw BenchmarkError(.otherProgram, "there is no Python") }
    let printed = try ChildProcess(python.program, [python.script] + arguments).run()
    guard let seconds = Double(printed.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw BenchmarkError(.otherProgram, "\(python.script) \(arguments[0]) did not say how long it took")
    }
    return seconds
  }
}

extension ContenderName {
  static let buckiaProcess: ContenderName = "Buckia, whole process"
  static let sqldiff: ContenderName = "sqldiff --changeset, whole process"
  static let cmp: ContenderName = "cmp, whole process"
  static let geodiffDiff: ContenderName = "pygeodiff create_changeset"
  static let geodiffApply: ContenderName = "pygeodiff apply_changeset"
  static let apswDiff: ContenderName = "apsw Session.diff"
  static let apswApply: ContenderName = "apsw Changeset.apply"
}
