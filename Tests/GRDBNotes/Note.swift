#if GRDB
  import Foundation
  import GRDB

  /// One note.
  struct Note: Codable, FetchableRecord, Identifiable, PersistableRecord, Sendable {
    static let databaseTableName = "notes"

    /// Two people make notes without knowing of each other: their ids must not be the same by accident.
    var id = UUID().uuidString
    var text: String
    var madeAt = Date()

    enum Columns {
      static let id = Column(CodingKeys.id)
      static let text = Column(CodingKeys.text)
      static let madeAt = Column(CodingKeys.madeAt)
    }
  }

  extension DerivableRequest<Note> {
    /// The oldest first, in the same order for everybody.
    func inOrder() -> Self { order { [$0.madeAt, $0.id] } }
  }
#endif
