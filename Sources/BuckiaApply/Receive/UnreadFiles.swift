/// The files that cannot be read for now. What their senders sent after them waits, since it may build on them.
struct UnreadFiles {
  /// The first file that could not be read as far as its sender: it may be anybody's.
  private var ofAnyone: String?
  private var bySender: [String: String] = [:]

  /// Takes a file that cannot be read for now.
  mutating func note(_ file: IncomingFile) {
    if !file.isSenderKnown {
      ofAnyone = ofAnyone ?? file.name
    } else if bySender[file.sender] == nil {
      bySender[file.sender] = file.name
    }
  }

  /// The file that a later one has to wait for, by its name; nil when it may be applied.
  func name(before file: IncomingFile) -> String? { ofAnyone ?? bySender[file.sender] }
}
