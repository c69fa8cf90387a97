import BuckiaBytes
import BuckiaStorage

extension StoragePermissions {
  /// How many rules a token may have.
  private static let ruleLimit = 1000

  /// A list of rules: `[{"actions":["read","list"]},{"actions":["write"],"prefix":"7f3a/inbound/"}]`. A prefix that ends with a slash is a
  /// folder, any other an object; without one, the rule holds everywhere.
  var document: JSONValue {
    .array(
      rules.map { rule in
        var object = JSONObject()
        object.append("actions", .array(rule.actions.words.map { .string($0) }))
        switch rule.place {
        case .everywhere: break
        case .folder(let path): object.append("prefix", .string("\(path)/"))
        case .object(let path): object.append("prefix", .string(path.text))
        }
        return .object(object)
      })
  }

  /// Reads a list of rules; nil when it is none. A rule with an unknown member or action makes the whole list unknown: it might be narrower
  /// than what we understand of it.
  init?(_ document: JSONValue) {
    guard case .array(let items) = document, items.count <= Self.ruleLimit else { return nil }
    var rules: [Rule] = []
    for item in items {
      guard case .object(let object) = item, case .array(let words)? = object["actions"] else { return nil }
      var actions: StorageActions = []
      for word in words {
        guard case .string(let text) = word, let action = StorageActions(word: text) else { return nil }
        actions.insert(action)
      }
      var place = Place.everywhere
      switch object["prefix"] {
      case nil: guard object.members.count == 1 else { return nil }
      case .string(let text)?:
        guard object.members.count == 2, let read = Place(prefix: text) else { return nil }
        place = read
      default: return nil
      }
      rules.append(Rule(actions, in: place))
    }
    self.init(rules)
  }
}

extension StoragePermissions.Place {
  /// Reads a prefix; nil when it is no path.
  fileprivate init?(prefix: String) {
    let isFolder = prefix.utf8.last == UInt8(ascii: "/")
    let text = isFolder ? String(Substring(prefix.utf8.dropLast())) : prefix
    // Why it is no path does not matter: the whole claim is refused.
    guard case .success(let path) = Result(catching: { () throws(StorageError) in try RemotePath(text) }) else {
      return nil
    }
    self = isFolder ? .folder(path) : .object(path)
  }
}
