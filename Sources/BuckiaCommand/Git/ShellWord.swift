/// A text as one word of a command that a shell runs.
struct ShellWord: CustomStringConvertible {
  let description: String

  init(_ text: String) {
    let parts = text.split(separator: "'", omittingEmptySubsequences: false)
    description = "'" + parts.joined(separator: #"'\''"#) + "'"
  }
}
