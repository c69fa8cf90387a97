import BuckiaApply
import BuckiaBytes
import BuckiaFormat

/// A diff that a replica has sent: the file as it travels, opened and verified once for all who receive it.
final class SentDiff {
  /// How steps call it.
  let number: Int
  let id: KSUID
  /// The replica that has sent it.
  let author: Int
  let file: IncomingFile
  let byteCount: Int

  init(_ number: Int, _ id: KSUID, by author: Int, bytes: [UInt8]) throws {
    self.number = number
    self.id = id
    self.author = author
    byteCount = bytes.count
    let input = try SpooledInput(PositionedInput(TemporaryBuffer(bytes)), named: DiffFileName.diff(id))
    file = IncomingFile(verifying: input)
  }
}
