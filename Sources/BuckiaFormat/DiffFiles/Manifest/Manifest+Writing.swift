import BuckiaBytes
import SQLiteSchemas

extension Manifest {
  /// The manifest as JSON, fields in the order of the specification.
  ///
  /// What is absent is left out, but for `chain.follows` and `chain.replaces`, which are then null.
  package var json: JSONValue {
    var object = JSONObject()
    object.append("format", .integer(Self.format))
    object.append("critical", .array(critical.map { .string($0) }))
    object.append("kind", .string(kind.rawValue))
    object.append("id", .string(id.description))
    if let dataset { object.append("dataset", .string(dataset.description)) }
    if let sender { object.append("sender", sender.json) }
    if let audience { object.append("audience", audience.json) }
    if let chain { object.append("chain", chain.json) }
    if !acknowledgements.isEmpty { object.append("acks", .array(acknowledgements.map(\.json))) }
    if let schema { object.append("schema", .string(schema.description)) }
    if !renames.isEmpty { object.append("renames", .array(renames.map(\.json))) }
    if !ownKeys.isEmpty { object.append("ownKeys", .array(ownKeys.map { .string($0.text) })) }
    if let sharedWith { object.append("sharedWith", sharedWith.json) }
    object.append("tables", .array(tables.map(\.json)))
    if !states.isEmpty { object.append("state", .array(states.map(\.json))) }
    if !resent.isEmpty { object.append("resent", .array(resent.map(\.json))) }
    if !requests.isEmpty { object.append("requests", .array(requests.map(\.json))) }
    object.append("members", .array(members.map(\.json)))
    object.members += additional.members
    return .object(object)
  }
}

extension ColumnRename {
  fileprivate var json: JSONValue {
    ["table": .string(table.text), "from": .string(oldName), "to": .string(newName)]
  }
}

extension Manifest.Sender {
  var json: JSONValue {
    var object = JSONObject()
    if let identity { object.append("identity", .string(identity.description)) }
    if let replica { object.append("replica", .string(replica.description)) }
    if let incarnation { object.append("incarnation", .string(incarnation.description)) }
    object.members += additional.members
    return .object(object)
  }
}

extension Audience {
  var json: JSONValue {
    switch self {
    case .recipients(let salt, let hashes):
      ["salt": .string(salt.description), "recipients": .array(hashes.map { .string($0.description) })]
    case .broadcast(let stream): ["broadcast": .string(stream.description)]
    }
  }
}

extension Manifest.Chain {
  var json: JSONValue {
    var object = JSONObject()
    object.append("stream", .string(stream.description))
    object.append("sequence", .integer(sequence))
    let predecessor: JSONValue =
      if let follows {
        ["id": .string(follows.id.description), "manifestSHA256": .string(follows.manifestSHA256.description)]
      } else {
        .null
      }
    object.append("follows", predecessor)
    object.append("replaces", .text(replaces?.description))
    object.members += additional.members
    return .object(object)
  }
}

extension Manifest.Acknowledgement {
  var json: JSONValue {
    var object = JSONObject()
    object.append("stream", .string(stream.description))
    object.append("incarnation", .string(incarnation.description))
    object.append("through", .integer(through))
    let exceptions = except.map { exception -> JSONValue in
      ["id": .string(exception.id.description), "state": .string(exception.state.rawValue)]
    }
    object.append("except", .array(exceptions))
    object.members += additional.members
    return .object(object)
  }
}

extension Manifest.Table {
  var json: JSONValue {
    var object = JSONObject()
    object.append("name", .string(name))
    object.append("columns", .number(columns))
    object.append("key", .string(key.rawValue))
    object.append("order", .string(order.rawValue))
    object.append("inserted", .integer(inserted))
    object.append("updated", .integer(updated))
    object.append("deleted", .integer(deleted))
    object.append("withdrawn", .integer(withdrawn))
    object.members += additional.members
    return .object(object)
  }
}

extension Manifest.Member {
  var json: JSONValue {
    var object = JSONObject()
    object.append("name", .string(name))
    object.append("size", .integer(size))
    object.append("sha256", .string(sha256.description))
    object.members += additional.members
    return .object(object)
  }
}
