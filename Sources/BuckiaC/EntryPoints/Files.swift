import Buckia
import CBuckia

@c @implementation
package func buckia_verify(
  _ paths: CStrings, _ path_count: Int, _ options: UnsafePointer<buckia_file_options>?,
  _ all_good: UnsafeMutablePointer<Bool>?, _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  all_good?.pointee = false
  return call(error, json) {
    let paths = try Arguments.texts(paths, path_count, "paths")
    let options = try FileOptions(options)
    try options.watch.check()
    let report = try DiffInspection.verify(
      paths.map { .path($0) }, home: options.home, decryption: options.decryption,
      progress: { options.watch.tell($0) }, poll: { try options.watch.check() })
    all_good?.pointee = report.files.allSatisfy(\.isGood)
    return report.json
  }
}

@c @implementation
package func buckia_invert(
  _ path: CString, _ output: CString, _ options: UnsafePointer<buckia_file_options>?, _ json: TextPlace,
  _ error: ErrorPlace
) -> buckia_status {
  call(error, json) {
    let path = try Arguments.text(path, "path")
    let options = try FileOptions(options)
    return try options.write(to: output) {
      try RewrittenChanges(inverting: .path(path), progress: $0, poll: $1)
    }
  }
}

@c @implementation
package func buckia_concat(
  _ paths: CStrings, _ path_count: Int, _ output: CString, _ options: UnsafePointer<buckia_file_options>?,
  _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  call(error, json) {
    let paths = try Arguments.texts(paths, path_count, "paths")
    guard !paths.isEmpty else { throw Arguments.misuse("paths is empty") }
    let options = try FileOptions(options)
    return try options.write(to: output) {
      try RewrittenChanges(concatenating: paths.map { .path($0) }, progress: $0, poll: $1)
    }
  }
}

/// The options for reading files, from `buckia_file_options`.
struct FileOptions {
  let home: BuckiaHome
  let decryption: FileDecryption?
  /// The files of identities.
  let identityFiles: [String]
  let watch: CallWatch
  private let replaces: Bool

  init(_ pointer: UnsafePointer<buckia_file_options>?) throws {
    let given = try Arguments.options(pointer, buckia_file_options())
    home = try BuckiaHome(given.home, given.home_passphrase)
    decryption = try FileDecryption.given(given.identities, given.identity_count, given.passphrase, in: home)
    identityFiles = try Arguments.texts(given.identities, given.identity_count, "identities")
    watch = CallWatch(given.progress, given.progress_context, given.cancellation)
    replaces = given.replace
  }

  /// Computes changes from files, and writes them to a new one.
  fileprivate func write(
    to output: CString,
    _ make: (@escaping RewrittenChanges.Progress, @escaping () throws -> Void) throws -> RewrittenChanges
  ) throws -> JSONValue {
    let output = try Arguments.output(output, replacing: replaces)
    try watch.check()
    let changes = try make({ watch.tell($0) }, { try watch.check() })
    return try changes.write(to: output, home: home).json
  }
}
