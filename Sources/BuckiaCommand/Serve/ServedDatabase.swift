import ArgumentParser
import Buckia

/// What `buckia serve` shows and works on.
struct ServedDatabase: Sendable {
  let manager: DatabaseManager
  /// The database, for people.
  let name: String
  /// The inbound folders.
  let folders: [InboundFolder]
  /// How they are applied.
  let options: ApplyOptions
  /// The person who decides, for the record.
  let decidedBy: String
  /// True if nothing can be changed from the pages.
  let isReadOnly: Bool
  /// How much is drawn on a page.
  let limits: PageLimits
  /// The beginning of the pages' addresses.
  let token = PageToken()

  /// The address of a page.
  ///
  /// - Parameters:
  ///   - path: The part after the token.
  ///   - fields: The query.
  func address(_ path: String = "", _ fields: [(name: String, value: String)] = []) -> String {
    let page = "/\(token.text)/\(path)"
    return fields.isEmpty ? page : "\(page)?\(FormFields(fields).encoded)"
  }

  /// The number of conflicts on a page.
  static let conflictsOnPage = 50
  /// The number of ledger entries on the first page.
  static let entriesOnPage = 50
  /// The number of a folder's files on a page.
  static let filesOnPage = 200
}
