#if GRDB
  import Buckia
  import BuckiaGRDB
  import Foundation
  import GRDB

  /// A person's notes: a database of GRDB's, and the folder where Buckia keeps who the person is and whom they know.
  struct Notebook {
    let queue: DatabaseQueue
    let home: BuckiaHome

    /// Opens the notes in a folder, or makes them.
    init(in folder: URL) throws {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let home = BuckiaHome(path: folder.appendingPathComponent("home").path)
      queue = try DatabaseQueue(path: folder.appendingPathComponent("notes.sqlite").path)
      self.home = home
      try Self.migrator(home).migrate(queue)
      // What a newer version of the app has sent may have a place now.
      try queue.withBuckia(home: home) { buckia in
        try buckia.applyHeldChanges(options: Self.applyOptions)
      }
    }

    private static func migrator(_ home: BuckiaHome) -> DatabaseMigrator {
      var migrator = DatabaseMigrator()
      migrator.registerMigration("ledger") { db in
        try db.buckia(home: home).initialize(trust: .known)
      }
      migrator.registerMigration("notes") { db in
        try db.create(table: "notes") { table in
          table.primaryKey("id", .text)
          table.column("text", .text).notNull()
          table.column("madeAt", .datetime).notNull()
        }
      }
      return migrator
    }

    /// The later edit wins, and the schema is the migrator's alone to change.
    static let applyOptions = ApplyOptions(conflicts: .latest, schema: .hold)

    // MARK: Notes

    func notes() throws -> [Note] { try queue.read { try Note.all().inOrder().fetchAll($0) } }

    func add(_ text: String) throws { try queue.write { try Note(text: text).insert($0) } }

    /// Gives a note another text.
    ///
    /// - Parameter number: Its number in the list, from 1.
    func edit(_ number: Int, to text: String) throws {
      try queue.write { db in
        var note = try Self.note(number, in: db)
        note.text = text
        try note.update(db)
      }
    }

    /// Deletes a note by its number in the list.
    func remove(_ number: Int) throws {
      try queue.write { db in _ = try Self.note(number, in: db).delete(db) }
    }

    private static func note(_ number: Int, in db: Database) throws -> Note {
      guard let note = try Note.all().inOrder().limit(1, offset: max(0, number - 1)).fetchOne(db) else {
        throw NotesError("there is no note \(number)")
      }
      return note
    }
  }

  /// A sentence for the person at the keyboard.
  struct NotesError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
  }
#endif
