import BuckiaBytes
import SQLiteChangesets

// Histories are kept as JSON documents that people can read, and change.
extension History {
  /// The most bytes that a file may have.
  private static let byteLimit = 64 << 20

  /// Writes the history, in the place of a file that is there.
  func write(failing failure: String, to path: String) throws {
    let output = try AtomicFileOutput(at: path, replacing: true)
    try output.write(Array("\(json(failing: failure).prettyText())\n".utf8))
    try output.publish()
  }

  /// Reads a history.
  init(contentsOf path: String) throws {
    do {
      guard let bytes = try PosixFile(reading: path).contents(limit: Self.byteLimit) else {
        throw BuckiaError(.unsupported, "no history is this large", path: path)
      }
      self = try History(JSONParser.parse(bytes))
    } catch let error as JSONError {
      throw BuckiaError(.unsupported, "this is no history of a simulation: \(error)", path: path)
    } catch {
      throw BuckiaError.wrapped(error)
    }
  }
}

extension History {
  /// The format of the files.
  private static let format: Int64 = 1

  /// The history as a document, with its failure.
  func json(failing failure: String) -> JSONValue {
    [
      "format": .integer(Self.format), "failure": .string(failure), "seed": .string("\(seed)"),
      "replicas": .number(replicas), "schema": .string(schema), "upgrade": .strings(upgrade),
      "steps": .array(steps.map(\.json)),
    ]
  }

  /// Reads a document.
  ///
  /// - Throws: `BuckiaError` when it is none that a failure has written.
  init(_ document: JSONValue) throws {
    var fields = try HistoryFields(document, of: HistoryDocument())
    guard try fields.integer("format") == Self.format else {
      throw HistoryDocument.refusal("it has another format than \(Self.format)")
    }
    guard let seed = UInt64(try fields.string("seed")) else { throw HistoryDocument.refusal("its seed is no number") }
    self.seed = seed
    schema = try fields.string("schema")
    upgrade = fields.has("upgrade") ? try fields.strings("upgrade") : []
    replicas = try fields.number("replicas")
    steps = try fields.objects("steps", limit: .max, Step.init(reading:))
  }
}

/// The document of a history.
private struct HistoryDocument: JSONDocument {
  static func refusal(_ reason: String) -> BuckiaError {
    BuckiaError(.unsupported, "this is no history of a simulation: \(reason)")
  }

  func invalid(_ field: String, _ problem: String) -> BuckiaError { Self.refusal("\"\(field)\" \(problem)") }
}

private typealias HistoryFields = JSONFields<HistoryDocument>

extension HistoryFields {
  fileprivate mutating func number(_ name: String) throws(BuckiaError) -> Int {
    Int(clamping: try integer(name, in: .min ... .max))
  }
}

extension Step {
  fileprivate var json: JSONValue {
    switch self {
    case .edit(let replica, let name, let statements):
      ["do": "edit", "replica": .number(replica), "name": .string(name), "statements": .array(statements.map(\.json))]
    case .send(let replica, let diff): ["do": "send", "replica": .number(replica), "diff": .number(diff)]
    case .deliver(let diff, let replica): ["do": "deliver", "diff": .number(diff), "replica": .number(replica)]
    case .receive(let replica, let reception):
      ["do": "receive", "replica": .number(replica), "reception": reception.json]
    case .wait(let seconds): ["do": "wait", "seconds": .number(seconds)]
    case .setClock(let replica, let ahead): ["do": "set clock", "replica": .number(replica), "ahead": .number(ahead)]
    case .upgrade(let replica): ["do": "upgrade", "replica": .number(replica)]
    case .trust(let replica, let other): ["do": "trust", "replica": .number(replica), "other": .number(other)]
    }
  }

  fileprivate init(reading fields: inout HistoryFields) throws(BuckiaError) {
    switch try fields.string("do") {
    case "edit":
      let statements = try fields.objects("statements", limit: .max, Statement.init(reading:))
      self = .edit(replica: try fields.number("replica"), name: try fields.string("name"), statements)
    case "send": self = .send(replica: try fields.number("replica"), diff: try fields.number("diff"))
    case "deliver": self = .deliver(diff: try fields.number("diff"), replica: try fields.number("replica"))
    case "receive":
      guard let reception = try fields.object("reception", Reception.init(reading:)) else {
        throw fields.invalid("reception", "is missing")
      }
      self = .receive(replica: try fields.number("replica"), reception)
    case "wait": self = .wait(seconds: try fields.number("seconds"))
    case "set clock": self = .setClock(replica: try fields.number("replica"), ahead: try fields.number("ahead"))
    case "upgrade": self = .upgrade(replica: try fields.number("replica"))
    case "trust": self = .trust(replica: try fields.number("replica"), other: try fields.number("other"))
    case let other: throw HistoryDocument.refusal("\"\(other)\" is no step")
    }
  }
}

extension Reception {
  fileprivate var json: JSONValue {
    var object = JSONObject([
      JSONObject.Member("order", .string(order.rawValue)), JSONObject.Member("groups", .numbers(groups)),
    ])
    switch interruption {
    case .stop(let file)?: object.append("stopBeforeFile", .number(file))
    case .crash(let rows)?: object.append("crashAfterRows", .number(rows))
    case nil: break
    }
    return .object(object)
  }

  fileprivate init(reading fields: inout HistoryFields) throws(BuckiaError) {
    guard let order = Order(rawValue: try fields.string("order")) else {
      throw HistoryDocument.refusal("\"order\" is unknown")
    }
    self.order = order
    groups = try fields.list("groups", limit: .max) { (value, _) throws(BuckiaError) in
      guard case .integer(let number) = value, number > 0 else { throw HistoryDocument.refusal("a group has no files") }
      return Int(clamping: number)
    }
    if fields.has("stopBeforeFile") { interruption = .stop(beforeFile: try fields.number("stopBeforeFile")) }
    if fields.has("crashAfterRows") { interruption = .crash(afterRows: try fields.number("crashAfterRows")) }
  }
}

extension Statement {
  fileprivate var json: JSONValue { ["sql": .string(sql), "values": .array(values.map(\.json))] }

  fileprivate init(reading fields: inout HistoryFields) throws(BuckiaError) {
    sql = try fields.string("sql")
    values = try fields.list("values", limit: .max) { (value, _) throws(BuckiaError) in try ChangesetValue(json: value)
    }
  }
}

extension ChangesetValue {
  /// Integers, text and NULL unchanged; other values as an object with their kind.
  fileprivate var json: JSONValue {
    switch self {
    case .null: .null
    case .integer(let number): .integer(number)
    case .text(let text): .string(text)
    // As text, which keeps every bit of it.
    case .real(let number): ["real": .string("\(number)")]
    case .blob(let bytes): ["blob": .string(HexText.lowercase(bytes))]
    }
  }

  fileprivate init(json value: JSONValue) throws(BuckiaError) {
    switch value {
    case .null: self = .null
    case .integer(let number): self = .integer(number)
    case .string(let text): self = .text(text)
    case .object(let object):
      if case .string(let text)? = object["real"], let number = Double(text) {
        self = .real(number)
      } else if case .string(let text)? = object["blob"], let bytes = HexText.bytes(text) {
        self = .blob(bytes)
      } else {
        throw HistoryDocument.refusal("a value is of no known kind")
      }
    default: throw HistoryDocument.refusal("\(value.kind) is no value")
    }
  }
}
