import Buckia
import BuckiaDiffFiles
import BuckiaKSUID
import Foundation
import SQLiteChangesets
import SQLiteSchemas

/// Changes that were made of others, on their way into a file.
struct ChangesetResult {
  private let changeset: ChangesetSpool
  private let inputs: [OpenedChanges]
  private let tablesInKeyOrder: Set<TableName>

  init(_ changeset: ChangesetSpool, from inputs: [OpenedChanges], tablesInKeyOrder: Set<TableName> = []) {
    self.changeset = changeset
    self.inputs = inputs
    self.tablesInKeyOrder = tablesInKeyOrder
  }

  /// Writes the changes where and as the options say, and reports it.
  func write(
    _ options: ChangesetOptions, since began: ContinuousClock.Instant, on console: Console
  ) throws -> ExitStatus {
    let definitions = try commonDefinitions()
    let summary = try changeset.withBytes { try ChangesetSummary.of($0) }
    if options.path == ArgumentFile.standardInput {
      guard !console.isJSON else { throw ChangesetProblem.twoThingsOnStandardOutput }
      try changeset.withBytes { bytes in
        try bytes.withUnsafeBytes { try FileHandle.standardOutput.write(contentsOf: Data($0)) }
      }
      return .done
    }
    var file: (id: KSUID, path: String, bytes: Int)?
    if !changeset.isEmpty { file = try writeFile(options, definitions: definitions) }
    let seconds = (ContinuousClock.now - began) / .seconds(1)
    try console.document(json(summary, file: file, seconds: seconds))
    if let file {
      try console.say("\(console.style(file.path.escaped, .strong))  \(ByteCount(file.bytes)) in \(Elapsed(seconds))")
    } else {
      try console.say("Nothing remains to be changed, so no file was written.")
    }
    try console.say(lines(summary, style: console.style))
    return .done
  }

  // MARK: Files

  private func writeFile(
    _ options: ChangesetOptions, definitions: [TableDefinition]?
  ) throws -> (id: KSUID, path: String, bytes: Int) {
    var id = try newID(in: options.home.folder)
    let path: String
    let isDiffFile: Bool
    switch OutputPath(options.path) {
    case .folder(let folder):
      isDiffFile = definitions != nil
      let name = isDiffFile ? DiffFileName.diff(id) : DiffFileName.changeset(id)
      path = folder == "." ? name : folder == "/" ? folder + name : "\(folder)/\(name)"
    case .file(let file):
      isDiffFile = file.hasSuffix(DiffFileName.diffSuffix)
      path = file
      if let named = DiffFileName.diffID(file) { id = named }
    }
    guard isDiffFile else {
      return (id, path, try Int(clamping: RawChangesetWriter.write(changeset, to: path, replacing: options.force)))
    }
    guard let definitions else { throw ChangesetProblem.noDefinitions }
    if let rich = inputs.first(where: { $0.carriesMore }) { throw ChangesetProblem.carriesMore(rich.path) }
    var manifest = Manifest(id: id)
    manifest.dataset = inputs.first?.dataset
    let draft = DiffFileDraft(
      manifest: manifest, schema: .included(definitions), tablesInKeyOrder: tablesInKeyOrder)
    var writer = DiffFileWriter()
    writer.replacesExisting = options.force
    let written = try writer.write(draft, changeset: changeset, to: path)
    return (id, path, Int(clamping: written.bytes))
  }

  /// An id greater than those of the files it was made of, unless these are from the future.
  private func newID(in home: BuckiaHome) throws -> KSUID {
    let now = Int64(Date().timeIntervalSince1970)
    let observed = inputs.compactMap(\.id).filter { $0.unixSeconds <= now + KSUIDClock.tolerance }
    let made = try home.newIDs(after: observed, unixSeconds: now)
    guard let id = made.ids.first else { throw ChangesetProblem.noID }
    return id
  }

  /// The definitions of all tables, when every file brought its own; nil otherwise.
  ///
  /// - Throws: `ChangesetProblem` when two files describe one table differently: their columns must not be mixed.
  private func commonDefinitions() throws -> [TableDefinition]? {
    var known: [TableName: TableDefinition] = [:]
    var ordered: [TableDefinition] = []
    var isComplete = true
    for input in inputs {
      guard let definitions = input.definitions else {
        isComplete = false
        continue
      }
      for definition in definitions {
        let name = TableName(definition.name)
        if let other = known[name] {
          guard other == definition else { throw ChangesetProblem.definitionsDiffer(definition.name, input.path) }
        } else {
          known[name] = definition
          ordered.append(definition)
        }
      }
    }
    return isComplete ? ordered : nil
  }

  // MARK: Output

  private func json(
    _ summary: ChangesetSummary, file: (id: KSUID, path: String, bytes: Int)?, seconds: Double
  ) -> JSONValue {
    let tables = summary.tables.map { table -> JSONValue in
      [
        "name": .string(table.table.name), "inserted": .number(table.inserted), "updated": .number(table.updated),
        "deleted": .number(table.deleted),
      ]
    }
    return [
      "version": 1, "id": .text(file?.id.description), "path": .text(file?.path),
      "bytes": .number(file?.bytes ?? 0), "tables": .array(tables), "seconds": .real(seconds),
    ]
  }

  private func lines(_ summary: ChangesetSummary, style: Style) -> [String] {
    var table = TextTable(["table", .number("inserted"), .number("updated"), .number("deleted")])
    for entry in summary.tables {
      table.add([
        .init(entry.table.name.escaped(limit: 60)), .count(entry.inserted, .good), .count(entry.updated, .notable),
        .count(entry.deleted, .bad),
      ])
    }
    return table.isEmpty ? [] : [""] + table.lines(style: style)
  }
}
