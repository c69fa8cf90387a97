import BuckiaBytes
import BuckiaStorage

/// A file of a folder of media, and the object that it is to be.
struct MediaFile: Sendable {
  let file: String
  let path: RemotePath
  /// The state of the file, by the file system.
  let state: String
  let byteCount: Int64

  /// All files of a folder that take part, by name.
  ///
  /// - Parameters:
  ///   - folder: The folder here. One that does not exist is empty.
  ///   - target: Its folder in the storage.
  ///   - filter: The filter for files.
  /// - Returns: The files, and the paths of files that are left out although the filter matches: links, hidden and
  ///   unfinished files, and those whose names no storage accepts.
  /// - Throws: `StorageError` when the folder cannot be read.
  static func all(
    in folder: String, to target: RemotePath, _ filter: PathFilter
  ) async throws -> (files: [MediaFile], leftOut: [String]) {
    let (page, names) = try await LocalFolder(folder).all(in: nil)
    return try await runBlocking {
      var files: [MediaFile] = []
      var leftOut = names.filter { filter.takes($0) }
      for object in page.objects where filter.takes(object.path.text) {
        let file = "\(folder)/\(object.path)"
        do {
          let path = try target.appending(object.path.text)
          // The file was deleted meanwhile.
          guard let identity = try FileIdentity.current(at: file) else { continue }
          files.append(MediaFile(file: file, path: path, state: identity.text, byteCount: object.byteCount))
        } catch let error as StorageError where error.code == .invalidName {
          leftOut.append(object.path.text)
        }
      }
      return (files, leftOut)
    }
  }
}

/// A pattern for paths: `*` stands for any number of characters in a name, `**` for any number across folders, `?` for
/// one character of a name. A pattern without a slash matches the last name alone.
struct PathPattern: Sendable, Equatable {
  private enum Part: Equatable {
    case character(UInt8)
    case one
    case some
    case anything
  }

  private let parts: [Part]
  private let isAboutName: Bool

  init(_ text: String) {
    var parts: [Part] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "*") where rest.first == UInt8(ascii: "*"):
        rest = rest.drop { $0 == UInt8(ascii: "*") }
        // `**/x` is `x` in any folder, and in none.
        if parts.isEmpty, rest.first == UInt8(ascii: "/") { rest.removeFirst() }
        parts.append(.anything)
      case UInt8(ascii: "*"): parts.append(.some)
      case UInt8(ascii: "?"): parts.append(.one)
      default: parts.append(.character(byte))
      }
    }
    self.parts = parts
    isAboutName = !text.utf8.contains(UInt8(ascii: "/"))
  }

  /// True if a path matches.
  func matches(_ path: String) -> Bool {
    let bytes = Array(path.utf8)
    let name = isAboutName ? bytes.lastIndex(of: UInt8(ascii: "/")).map { Array(bytes[($0 + 1)...]) } ?? bytes : bytes
    // The places of the pattern that can be reached after each byte: the time is linear in both, whatever the pattern.
    var states = closed([0])
    for (index, byte) in name.enumerated() {
      var next: Set<Int> = []
      for state in states where state < parts.count {
        switch parts[state] {
        case .character(let wanted): if byte == wanted { next.insert(state + 1) }
        // A character of several bytes ends with the last of them.
        case .one:
          if byte != UInt8(ascii: "/") {
            let isInside = index + 1 < name.count && name[index + 1] & 0xC0 == 0x80
            next.insert(isInside ? state : state + 1)
          }
        case .some: if byte != UInt8(ascii: "/") { next.insert(state) }
        case .anything: next.insert(state)
        }
      }
      states = closed(next)
    }
    return states.contains(parts.count)
  }

  /// The places, with those that can be reached without reading a byte.
  private func closed(_ states: Set<Int>) -> Set<Int> {
    var found = states
    for state in states {
      var place = state
      while place < parts.count, parts[place] == .some || parts[place] == .anything {
        place += 1
        found.insert(place)
      }
    }
    return found
  }
}

/// The filter for media.
struct PathFilter: Sendable {
  private let include: [PathPattern]
  private let exclude: [PathPattern]

  init(_ include: [String], except exclude: [String]) {
    self.include = include.map { PathPattern($0) }
    self.exclude = exclude.map { PathPattern($0) }
  }

  /// True if a file takes part.
  func takes(_ path: String) -> Bool {
    (include.isEmpty || include.contains { $0.matches(path) }) && !exclude.contains { $0.matches(path) }
  }
}
