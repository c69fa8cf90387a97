import Buckia
import CBuckia

@c @implementation
package func buckia_diff(
  _ database: OpaquePointer?, _ older: CString, _ output: CString, _ options: UnsafePointer<buckia_diff_options>?,
  _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database, json) { database in
    let given = try Arguments.options(options, buckia_diff_options())
    let older = try Arguments.optionalText(older, "older")
    let output = try Arguments.output(output, replacing: given.replace, write: given.write, given.write_context)
    let tables = try Arguments.texts(given.tables, given.table_count, "tables")
    var options = DiffOptions(
      tables: tables.isEmpty ? nil : tables.map { TableName($0) }, method: try given.method.method, isRaw: given.raw)
    options.allowsUnrelated = given.unrelated
    options.includesSent = given.again
    let signer = try given.sign ? database.home.identity() : nil
    let watch = CallWatch(given.progress, given.progress_context, given.cancellation)
    try watch.check()
    let report = try database.with { manager in
      try manager.createDatabaseDiff(
        since: older, output: output, options: options, signedBy: signer,
        progress: { try watch.tell($0) })
    }
    return report.json
  }
}

@c @implementation
package func buckia_share(
  _ database: OpaquePointer?, _ scope: CString, _ recipients: CStrings, _ recipient_count: Int, _ output: CString,
  _ options: UnsafePointer<buckia_share_options>?, _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database, json) { database in
    let given = try Arguments.options(options, buckia_share_options())
    let scope = try Arguments.optionalText(scope, "scope").map { try ShareScope(json: $0) }
    let known = Recipients(in: database.home)
    let recipients = try Arguments.texts(recipients, recipient_count, "recipients").map { try known.recipient($0) }
    // A dry run writes nothing and needs no output.
    let needsOutput = !given.dry_run || output != nil || given.write != nil
    let output =
      try needsOutput
      ? Arguments.output(output, replacing: given.replace, write: given.write, given.write_context) : .folder(".")
    var options = ShareOptions()
    options.onLeave = given.keep_on_leave ? .keep : .withdraw
    options.propagates = given.propagate
    options.acknowledges = given.acknowledge
    options.resyncs = given.resync
    options.isUnencrypted = given.unencrypted
    options.isDryRun = given.dry_run
    let watch = CallWatch(given.progress, given.progress_context, given.cancellation)
    try watch.check()
    let report = try database.with { manager in
      try manager.share(
        scope ?? manager.onlyScope(sharedWith: recipients), to: recipients, output: output, options: options,
        signedBy: manager.home.identityIfAny(), progress: { try watch.tell($0) })
    }
    return report.json
  }
}

extension DatabaseManager {
  /// The only scope that is shared with these people.
  ///
  /// - Throws: `BuckiaError` with `misuse` when there is none, or several.
  fileprivate func onlyScope(sharedWith recipients: [ShareRecipient]) throws -> ShareScope {
    let scopes = try sharedScopes(with: recipients)
    guard let scope = scopes.first, scopes.count == 1 else {
      throw Arguments.misuse(
        scopes.isEmpty
          ? "scope is NULL, and nothing is shared with these recipients yet"
          : "scope is NULL, and \(scopes.count) scopes are shared with these recipients")
    }
    return scope
  }
}
