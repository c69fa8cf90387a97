extension ChangesetReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    let tables = tables.map { table -> JSONValue in
      [
        "name": .string(table.name), "inserted": .number(table.inserted), "updated": .number(table.updated),
        "deleted": .number(table.deleted),
      ]
    }
    let members: [JSONObject.Member] = [
      JSONObject.Member("version", 1), JSONObject.Member("id", .text(id?.description)),
      JSONObject.Member("path", .text(path)), JSONObject.Member("bytes", .number(bytes)),
      JSONObject.Member("tables", .array(tables)),
      JSONObject.Member("warnings", .array(remarks.map { .string($0.shown) })),
      JSONObject.Member("remarks", .array(remarks.map(\.json))), JSONObject.Member("seconds", .real(seconds)),
    ]
    return .object(JSONObject(members + (rebase?.json ?? [])))
  }
}
