/// Checks that a storage fulfills ``StorageProvider`` within its stated capabilities: for the tests of your own
/// provider.
///
/// ```swift
/// let faults = try await StorageConformance.run(on: MyStorage(), in: RemotePath("conformance"))
/// #expect(faults.isEmpty)
/// ```
public struct StorageConformance: Sendable {
  /// One thing that is not as it has to be.
  public struct Fault: Sendable, Equatable, CustomStringConvertible {
    /// The rule.
    public let rule: String
    /// What happened instead.
    public let finding: String

    /// The rule and the finding.
    public var description: String { "\(rule): \(finding)" }
  }

  private let storage: any StorageProvider
  private let folder: RemotePath
  private var faults: [Fault] = []

  /// Runs all checks. Everything in the folder is deleted before and afterwards.
  ///
  /// - Parameters:
  ///   - storage: The storage.
  ///   - folder: A folder that the checks have for themselves.
  /// - Returns: The violations; empty if there are none.
  /// - Throws: `StorageError` when the folder cannot be emptied.
  public static func run(on storage: any StorageProvider, in folder: RemotePath) async throws -> [Fault] {
    var suite = StorageConformance(storage: storage, folder: folder)
    try await storage.deleteAll(in: folder)
    for (rule, check) in checks {
      do { try await check(&suite, rule) } catch { suite.faults.append(Fault(rule: rule, finding: "throws \(error)")) }
      try await storage.deleteAll(in: folder)
    }
    return suite.faults
  }

  private init(storage: any StorageProvider, folder: RemotePath) {
    self.storage = storage
    self.folder = folder
  }

  private typealias Check = @Sendable (inout StorageConformance, String) async throws -> Void

  private static let checks: [(String, Check)] = [
    ("what is put can be read", { try await $0.roundTrip($1) }),
    ("what does not exist is not there", { try await $0.missing($1) }),
    ("putting again replaces", { try await $0.replacing($1) }),
    ("names of other scripts, with spaces and signs, stay as they are", { try await $0.names($1) }),
    ("a listing has every object once, by name", { try await $0.listing($1) }),
    ("a listing begins behind a name", { try await $0.listingAfter($1) }),
    ("a folder's name is no beginning of another's", { try await $0.neighbours($1) }),
    ("a part of an object can be read", { try await $0.ranges($1) }),
    ("nothing is replaced where nothing may be there", { try await $0.putIfAbsent($1) }),
    ("of several who put where nothing may be there, one succeeds", { try await $0.race($1) }),
    ("only the expected version is replaced", { try await $0.putIfVersion($1) }),
    ("only the wanted version is read", { try await $0.getVersion($1) }),
    ("a version changes with the contents", { try await $0.versions($1) }),
    ("moving takes the object along", { try await $0.moving($1) }),
    ("moving replaces only what it may", { try await $0.movingOnto($1) }),
  ]

  // MARK: What the checks are made of

  private mutating func expect(_ isTrue: Bool, _ rule: String, _ finding: @autoclosure () -> String) {
    if !isTrue { faults.append(Fault(rule: rule, finding: finding())) }
  }

  private func path(_ name: String) throws -> RemotePath { try folder.appending(name) }

  private func put(_ text: String, _ name: String, _ condition: PutCondition = .none) async throws -> StoredObject {
    try await storage.put(StorageContents(Array(text.utf8)), to: path(name), condition)
  }

  private func text(_ name: String, _ request: GetRequest = GetRequest()) async throws -> String {
    let download = try await storage.get(path(name), request)
    return String(decoding: try await download.chunks.bytes(upTo: 1 << 20), as: UTF8.self)
  }

  /// The code of the error that something ends with; nil if it succeeds.
  private func code(of body: () async throws -> Void) async throws -> StorageError.Code? {
    do {
      try await body()
      return nil
    } catch let error as StorageError { return error.code }
  }

  /// The version of an object, which some storages do not return for a put.
  private func version(_ name: String) async throws -> ObjectVersion? { try await storage.stat(path(name))?.version }

  // MARK: Reading and writing

  private mutating func roundTrip(_ rule: String) async throws {
    for count in [0, 1, 1000, 300_000] {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
      let path = try path("sub/object-\(count)")
      try await storage.put(StorageContents(bytes), to: path, .none)
      let found = try await storage.stat(path)
      expect(
        found?.byteCount == Int64(count), rule, "of \(count) bytes, stat says \(String(describing: found?.byteCount))")
      let download = try await storage.get(path, GetRequest())
      expect(
        download.object.byteCount == Int64(count), rule, "of \(count) bytes, get says \(download.object.byteCount)")
      let read = try await download.chunks.bytes(upTo: count + 1)
      expect(read == bytes, rule, "\(count) bytes come back as \(read.count) others")
    }
  }

  private mutating func missing(_ rule: String) async throws {
    let path = try path("missing")
    let found = try await storage.stat(path)
    expect(found == nil, rule, "stat finds \(String(describing: found))")
    let read = try await code { _ = try await storage.get(path, GetRequest()).chunks.bytes(upTo: 1 << 20) }
    expect(read == .notFound, rule, "get ends with \(read?.rawValue ?? "success")")
    let deleted = try await code { try await storage.delete(path) }
    expect(deleted == nil, rule, "delete ends with \(deleted?.rawValue ?? "")")
    let inside = try await code { try await storage.delete(try path.appending("inside")) }
    expect(inside == nil, rule, "delete in a missing folder ends with \(inside?.rawValue ?? "")")
    let listed = try await storage.listAll(path)
    expect(listed.objects.isEmpty, rule, "a missing folder has \(listed.objects.count) objects")
    _ = try await put("x", "there")
    try await storage.delete(self.path("there"))
    let afterwards = try await storage.stat(self.path("there"))
    expect(afterwards == nil, rule, "it is there after it was deleted")
  }

  private mutating func replacing(_ rule: String) async throws {
    _ = try await put("a longer text", "object")
    _ = try await put("short", "object")
    let read = try await text("object")
    expect(read == "short", rule, "it is \"\(read)\" then")
  }

  private mutating func names(_ rule: String) async throws {
    let names = [
      "with space", "plus+and&and=", "percent%41", "query?", "hash#", "semi;colon:", "quote'\"", "Ünïcödé", "照片",
      "e\u{301}", "dots..inside", "~tilde", "(round)", "[square]", "{curly}", "comma,", "at@", "dollar$", "star*",
      "bang!",
      "back\\slash", "less<greater>", "pipe|",
    ]
    var stored: [String] = []
    for name in names {
      switch try await code(of: { _ = try await put(name, name) }) {
      case nil: stored.append(name)
      // A storage may refuse a name, but not alter it.
      case .invalidName: break
      case let code?: expect(false, rule, "\"\(name)\" cannot be put: \(code.rawValue)")
      }
    }
    for name in stored {
      let read = try await text(name)
      expect(read == name, rule, "\"\(name)\" reads as \"\(read)\"")
    }
    let listed = try await storage.listAll(folder).objects.map(\.path)
    let expected = try stored.map { try path($0) }.sorted()
    expect(listed == expected, rule, "the listing has \(listed.count) of \(expected.count): \(listed)")
  }

  // MARK: Listing

  private func fill(_ names: [String]) async throws -> [RemotePath] {
    for name in names { _ = try await put(name, name) }
    return try names.map { try path($0) }.sorted()
  }

  private mutating func listing(_ rule: String) async throws {
    let expected = try await fill(
      (0..<25).map { "object-\($0)" } + ["sub/one", "sub/deeper/two", "Capital", "sub-way"])
    for size in [nil, 1000, 7] {
      let found = try await storage.listAll(folder, pageSize: size)
      let pages = size.map { "pages of \($0)" } ?? "one page"
      expect(found.objects.map(\.path) == expected, rule, "\(pages): \(found.objects.map(\.path))")
    }
    let sizes = try await storage.listAll(folder).objects.allSatisfy {
      $0.byteCount == Int64(($0.path.relative(to: folder) ?? "").utf8.count)
    }
    expect(sizes, rule, "some sizes are wrong")
  }

  private mutating func listingAfter(_ rule: String) async throws {
    let expected = try await fill(["a", "b", "b/inside", "c", "d"].filter { $0 != "b" })
    for after in ["a", "b", "bb", "d", "e"] {
      let name = try path(after)
      let found = try await storage.listAll(folder, after: name).objects.map(\.path)
      expect(found == expected.filter { $0 > name }, rule, "behind \"\(after)\" there is \(found)")
    }
  }

  private mutating func neighbours(_ rule: String) async throws {
    _ = try await fill(["album/one", "album2/two", "album-three"])
    let found = try await storage.listAll(path("album")).objects.map(\.path)
    expect(found == [try path("album/one")], rule, "in \"album\" there is \(found)")
  }

  // MARK: Parts, conditions, moves

  private mutating func ranges(_ rule: String) async throws {
    _ = try await put("0123456789", "object")
    let requests: [(GetRequest, String)] = [
      (GetRequest(offset: 3), "3456789"), (GetRequest(offset: 3, count: 4), "3456"),
      (GetRequest(offset: 8, count: 100), "89"), (GetRequest(offset: 0, count: 1), "0"),
    ]
    for (request, expected) in requests {
      let read = try await text("object", request)
      expect(read == expected, rule, "from \(request.offset): \"\(read)\" instead of \"\(expected)\"")
      let object = try await storage.get(path("object"), request).object
      expect(object.byteCount == 10, rule, "the whole object has \(object.byteCount) bytes instead of 10")
    }
  }

  private mutating func putIfAbsent(_ rule: String) async throws {
    guard storage.capabilities.putsIfAbsent else { return }
    _ = try await put("first", "object", .ifAbsent)
    let code = try await code { _ = try await put("second", "object", .ifAbsent) }
    expect(code == .alreadyExists, rule, "the second ends with \(code?.rawValue ?? "success")")
    let read = try await text("object")
    expect(read == "first", rule, "it is \"\(read)\" then")
  }

  private mutating func race(_ rule: String) async throws {
    guard storage.capabilities.putsIfAbsent, storage.capabilities.conditionsAreAtomic else { return }
    let path = try path("object")
    let storage = storage
    let winners = try await withThrowingTaskGroup(of: Int?.self) { group in
      for number in 0..<8 {
        group.addTask {
          do {
            try await storage.put(StorageContents(Array("\(number)".utf8)), to: path, .ifAbsent)
            return number
          } catch let error as StorageError where [.alreadyExists, .conflict].contains(error.code) { return nil }
        }
      }
      return try await group.reduce(into: [Int]()) { if let winner = $1 { $0.append(winner) } }
    }
    let read = try await text("object")
    expect(
      winners.count == 1 && read == winners.first.map { "\($0)" }, rule, "\(winners) succeed, and \"\(read)\" is there")
  }

  private mutating func putIfVersion(_ rule: String) async throws {
    guard storage.capabilities.putsIfVersion else { return }
    _ = try await put("first", "object")
    guard let first = try await version("object") else { return expect(false, rule, "the object has no version") }
    _ = try await put("second one", "object", .ifVersion(first))
    let late = try await code { _ = try await put("third", "object", .ifVersion(first)) }
    expect(late == .changed, rule, "a former version: ends with \(late?.rawValue ?? "success")")
    let absent = try await code { _ = try await put("fourth", "absent", .ifVersion(first)) }
    expect(absent == .changed || absent == .notFound, rule, "no object: ends with \(absent?.rawValue ?? "success")")
    let read = try await text("object")
    expect(read == "second one", rule, "it is \"\(read)\" then")
  }

  private mutating func getVersion(_ rule: String) async throws {
    _ = try await put("first", "object")
    guard let first = try await version("object") else { return }
    _ = try await put("second one", "object")
    let code = try await code { _ = try await text("object", GetRequest(version: first)) }
    expect(code == .changed, rule, "a former version: ends with \(code?.rawValue ?? "success")")
    let second = try await version("object")
    let read = try await text("object", GetRequest(version: second))
    expect(read == "second one", rule, "the present one reads as \"\(read)\"")
  }

  private mutating func versions(_ rule: String) async throws {
    _ = try await put("first", "object")
    let first = try await version("object")
    let again = try await version("object")
    expect(first == again, rule, "it changes without them")
    _ = try await put("other", "object")
    let second = try await version("object")
    if storage.capabilities.putsIfVersion { expect(first != second, rule, "both are \(String(describing: first))") }
    let listed = try await storage.listAll(folder).objects.first?.version
    expect(
      listed == nil || listed == second, rule,
      "the listing says \(String(describing: listed)), stat \(String(describing: second))")
  }

  private mutating func moving(_ rule: String) async throws {
    _ = try await put("text", "object")
    try await storage.moveOrCopy(path("object"), to: path("new folder/moved"))
    let read = try await text("new folder/moved")
    let left = try await storage.stat(path("object"))
    expect(
      read == "text" && left == nil, rule,
      "it reads as \"\(read)\", and the original is \(left == nil ? "gone" : "there")")
    let code = try await code { try await storage.moveOrCopy(path("object"), to: path("other")) }
    expect(code == .notFound, rule, "what is not there: ends with \(code?.rawValue ?? "success")")
  }

  private mutating func movingOnto(_ rule: String) async throws {
    _ = try await put("one", "one")
    _ = try await put("two", "two")
    let code = try await code { try await storage.moveOrCopy(path("one"), to: path("two")) }
    expect(code == .alreadyExists, rule, "without replacing: ends with \(code?.rawValue ?? "success")")
    let kept = try await text("two")
    expect(kept == "two", rule, "it reads as \"\(kept)\" then")
    try await storage.moveOrCopy(path("one"), to: path("two"), replacing: true)
    let replaced = try await text("two")
    expect(replaced == "one", rule, "with replacing, it reads as \"\(replaced)\"")
  }
}
