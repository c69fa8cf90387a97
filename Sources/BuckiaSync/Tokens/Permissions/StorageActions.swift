/// What may be done with objects.
public struct StorageActions: OptionSet, Hashable, Sendable, CustomStringConvertible {
  /// The actions as bits.
  public let rawValue: UInt8
  /// Takes bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// To read an object, and to look it up by its name.
  public static let read = Self(rawValue: 1)
  /// To write an object, also in place of another.
  public static let write = Self(rawValue: 2)
  /// To delete an object.
  public static let delete = Self(rawValue: 4)
  /// To list the objects in a folder.
  public static let list = Self(rawValue: 8)
  /// Everything.
  public static let all: Self = [.read, .write, .delete, .list]

  /// The actions with their words, in the order in which they are written.
  private static let words: [(Self, String)] = [
    (.read, "read"), (.write, "write"), (.delete, "delete"), (.list, "list"),
  ]

  /// The words for the actions.
  public var words: [String] { Self.words.filter { contains($0.0) }.map(\.1) }

  /// Takes a word; nil when it is none.
  init?(word: String) {
    guard let found = Self.words.first(where: { $0.1 == word }) else { return nil }
    self = found.0
  }

  /// The words, for people.
  public var description: String { isEmpty ? "nothing" : words.joined(separator: ", ") }
}
