import BuckiaBytes

/// The origins of a diff's changes, unless all of them are its sender's own edits.
///
/// Runs follow the order of the changeset: the first run describes the first `count` changes, and so on to the last
/// change. Without runs every change has the diff's own id as its origin and is an edit.
package struct Annotations: Equatable, Sendable {
  /// The meaning of a change.
  package enum Kind: String, Sendable {
    /// Somebody changed the row.
    case edit
    /// A DELETE of a row that is no longer shared, though its owner did not delete it.
    case withdraw
  }

  /// Neighbouring changes with one origin and one meaning.
  package struct Run: Equatable, Sendable {
    /// The number of changes, at least 1.
    package var count: Int64
    /// Their origin: an index into ``Annotations/origins``.
    package var origin: Int
    /// Their meaning.
    package var kind: Kind
    /// Columns whose values come from elsewhere, ascending.
    package var columns: [ColumnOrigin]

    /// Creates a run.
    package init(count: Int64, origin: Int, kind: Kind = .edit, columns: [ColumnOrigin] = []) {
      self.count = count
      self.origin = origin
      self.kind = kind
      self.columns = columns
    }
  }

  /// A column with another origin than the rest of its change.
  package struct ColumnOrigin: Equatable, Sendable {
    /// The column's place in the changeset, from 0.
    package var column: Int
    /// Its origin: an index into ``Annotations/origins``.
    package var origin: Int

    /// Creates an override.
    package init(column: Int, origin: Int) {
      self.column = column
      self.origin = origin
    }
  }

  static let format: Int64 = 1

  /// The ids of the diffs that the changes come from, none twice.
  package var origins: [KSUID]
  /// The runs, in the order of the changes; empty if all are the sender's own edits.
  package var runs: [Run]
  /// How other replicas call the rows; nil if none calls one otherwise, or has given it its key.
  package var keys: RowKeys?

  /// Creates annotations.
  package init(origins: [KSUID], runs: [Run], keys: RowKeys? = nil) {
    self.origins = origins
    self.runs = runs
    self.keys = keys
  }

  /// The document in its canonical form; a run has `kind` and `columns` only if they differ from the default.
  package func bytes() -> [UInt8] {
    let runs = runs.map { run -> JSONValue in
      var object = JSONObject()
      object.append("count", .integer(run.count))
      object.append("origin", .number(run.origin))
      if run.kind != .edit { object.append("kind", .string(run.kind.rawValue)) }
      if !run.columns.isEmpty {
        object.append(
          "columns", .array(run.columns.map { ["column": .number($0.column), "origin": .number($0.origin)] }))
      }
      return .object(object)
    }
    var document = JSONObject()
    document.append("format", .integer(Self.format))
    document.append("origins", .array(origins.map { .string($0.description) }))
    document.append("runs", .array(runs))
    if let keys { document.append("keys", keys.json) }
    return JSONValue.object(document).bytes()
  }

  /// Reads annotations and makes the checks that need no changeset.
  ///
  /// - Throws: `DiffFileError` with code `badJSON`, `unsupportedFormat`, `badAnnotations` or `tooLarge`.
  package init(parsing bytes: [UInt8]) throws(DiffFileError) {
    let document = JSONMember.annotations
    guard bytes.count <= DiffFileLimits.annotationsBytes else {
      throw DiffFileError(
        .tooLarge, "they have \(bytes.count) bytes; the limit is \(DiffFileLimits.annotationsBytes)",
        member: document.name)
    }
    var fields = try MemberFields(document.parse(bytes), at: "", of: document)
    let format = try fields.integer("format", in: Int64.min...Int64.max)
    guard format == Self.format else {
      throw DiffFileError(
        .unsupportedFormat, "the annotations have format \(format), made by a newer version", member: document.name)
    }
    let origins = try fields.list("origins", limit: Int.max) { (value, path) throws(DiffFileError) in
      guard case .string(let text) = value, let id = KSUID(text) else { throw document.invalid(path, "is no id") }
      return id
    }
    let last = Int64(origins.count) - 1
    let runs = try fields.list("runs", limit: Int.max) { (value, path) throws(DiffFileError) in
      guard last >= 0 else { throw document.invalid("origins", "is empty") }
      return try Run(value, at: path, lastOrigin: last)
    }
    let keys = try fields.object("keys", RowKeys.init(reading:))
    try fields.finish()
    guard Set(origins).count == origins.count else { throw document.invalid("origins", "holds an id twice") }
    self.init(origins: origins, runs: runs, keys: keys)
  }

  /// Checks that no origin is later than the diff, whose sender had seen them all when it got its id.
  ///
  /// A later origin would win every future conflict under the policy `latest`.
  func check(id: KSUID) throws(DiffFileError) {
    if let late = origins.first(where: { $0 > id }) {
      throw JSONMember.annotations.invalid("origins", "holds \(late), which is later than the diff itself")
    }
  }
}

extension Annotations.Run {
  fileprivate init(_ value: JSONValue, at path: String, lastOrigin: Int64) throws(DiffFileError) {
    var fields = try MemberFields(value, at: path, of: .annotations)
    self.init(
      count: try fields.integer("count", in: 1...DiffFileLimits.number),
      origin: Int(try fields.integer("origin", in: 0...lastOrigin)))
    if fields.remaining["kind"] != nil { kind = try fields.choice("kind", of: Annotations.Kind.self) }
    columns = try fields.objectsIfNamed("columns", limit: DiffFileLimits.columns + 1) {
      (fields: inout MemberFields) throws(DiffFileError) in
      Annotations.ColumnOrigin(
        column: Int(try fields.integer("column", in: 0...Int64(DiffFileLimits.columns))),
        origin: Int(try fields.integer("origin", in: 0...lastOrigin)))
    }
    guard zip(columns, columns.dropFirst()).allSatisfy({ $0.column < $1.column }) else {
      throw fields.invalid("columns", "does not name its columns in ascending order")
    }
    try fields.finish()
  }
}

/// Steps through the annotations in parallel with the changes.
struct AnnotationCursor {
  private let annotations: Annotations?
  private var index = 0
  private var left: Int64 = 0

  init(_ annotations: Annotations?) { self.annotations = annotations?.runs.isEmpty == false ? annotations : nil }

  /// The run that describes the next change; nil without annotations.
  mutating func next() throws(DiffFileError) -> Annotations.Run? {
    guard let annotations else { return nil }
    if left == 0 {
      guard index < annotations.runs.count else { throw Self.wrongCount }
      left = annotations.runs[index].count
      index += 1
    }
    left -= 1
    return annotations.runs[index - 1]
  }

  /// Checks that the annotations end with the changes.
  func finish() throws(DiffFileError) {
    guard left == 0, index == annotations?.runs.count ?? 0 else { throw Self.wrongCount }
  }

  private static let wrongCount = DiffFileError(
    .contradiction, "the annotations describe more or fewer changes than there are",
    member: JSONMember.annotations.name)
}
