import Buckia
import BuckiaBenchmarks
import Foundation

/// The other programs that Buckia is compared with, as far as they are installed.
struct Peers {
  /// Buckia's own command line, built with optimisation.
  let buckia: String
  /// `sqldiff`; nil when it is not installed.
  let sqldiff: String?
  /// A Python with apsw and pygeodiff; nil when there is none.
  let python: PythonPeer?
  /// The versions, and which programs are missing.
  let notes: [String]

  /// Looks for them.
  static func find() throws -> Peers {
    var notes: [String] = []
    let sqldiff = ChildProcess.find("sqldiff")
    notes.append(
      sqldiff == nil
        ? "sqldiff is not installed, so it was not measured (Debian's package is sqlite3-tools)."
        : "sqldiff \(version(ofPackage: "sqlite3-tools") ?? "of an unknown version").")
    let python = PythonPeer.find()
    if let python {
      let versions = try python.lines("versions")
      notes.append(
        "\(versions.joined(separator: ", ")): the library's own work is timed, without Python's start and imports.")
    } else {
      notes.append("There is no Python with apsw and pygeodiff here, so they were not measured.")
    }
    return Peers(buckia: try ChildProcess.path(of: "buckia"), sqldiff: sqldiff, python: python, notes: notes)
  }

  /// The version of an installed Debian package; nil where there is none.
  private static func version(ofPackage name: String) -> String? {
    guard let query = ChildProcess.find("dpkg-query") else { return nil }
    do { return try ChildProcess(query, ["-W", "-f", "${Version}", name]).run() } catch {
      // It was not installed as a package, so the version is unknown.
      return nil
    }
  }

  /// Lets the Python script do one piece of work.
  ///
  /// - Returns: How many seconds it took.
  func seconds(_ arguments: String...) throws -> Double {
    guard let python else { throw BuckiaError(.otherProgram, "there is no Python") }
    return try python.process(arguments).seconds(1)[0]
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
