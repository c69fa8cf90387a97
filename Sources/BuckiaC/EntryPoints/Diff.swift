import Buckia
import CBuckia

@c @implementation
package func buckia_diff(
  _ database: OpaquePointer?, _ older: UnsafePointer<CChar>?, _ output: UnsafePointer<CChar>?,
  _ options: UnsafePointer<buckia_diff_options>?, _ json: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
  _ error: UnsafeMutablePointer<OpaquePointer?>?
) -> buckia_status {
  json?.pointee = nil
  return call(error) {
    let database: Database = try Handle.required(database, "database")
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
    try Results.give(report.json, to: json)
  }
}
