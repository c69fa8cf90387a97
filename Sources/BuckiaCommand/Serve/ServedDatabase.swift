import ArgumentParser
import Buckia

/// What `buckia serve` shows and works on.
struct ServedDatabase: Sendable {
  let manager: DatabaseManager
  /// The database, for people.
  let name: String
  /// Where diff files arrive.
  let folders: [InboundFolder]
  /// How they are applied.
  let options: ApplyOptions
  /// Who decides, for the record.
  let decidedBy: String
  /// True if nothing can be changed from the pages.
  let isReadOnly: Bool
  /// How much is drawn on a page.
  let limits: PageLimits
  /// What the addresses of the pages begin with.
  let token = PageToken()

  /// The address of a page.
  ///
  /// - Parameters:
  ///   - path: What stands behind the token.
  ///   - fields: The query.
  func address(_ path: String = "", _ fields: [(name: String, value: String)] = []) -> String {
    let page = "/\(token.text)/\(path)"
    return fields.isEmpty ? page : "\(page)?\(FormFields(fields).encoded)"
  }

  /// How many conflicts are on a page.
  static let conflictsOnPage = 50
  /// How many entries of the ledger are on the first page.
  static let entriesOnPage = 50
  /// How many files of a folder are on a page.
  static let filesOnPage = 200
}
