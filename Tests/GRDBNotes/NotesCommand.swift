#if GRDB
  import Buckia
  import BuckiaGRDB
  import Foundation
  import GRDB

  /// Notes that people exchange through a folder.
  @main
  enum NotesCommand {
    private static let usage = """
      GRDBNotes NOTES FOLDER COMMAND …
        NOTES   where your notes are, for you alone
        FOLDER  what you share with others

        join NAME                 makes your keys, and puts your card into the folder
        meet NAME                 shows the fingerprint of somebody's card
        meet NAME FINGERPRINT     trusts them, when you have compared it with them
        list                      shows the notes
        add TEXT                  adds a note
        edit NUMBER TEXT          gives a note another text
        remove NUMBER             deletes a note
        exchange                  takes what has come, and sends what is new
        log                       shows what has come, and the conflicts
      """

    static func main() {
      do {
        try run(Array(CommandLine.arguments.dropFirst()))
      } catch {
        FileHandle.standardError.write(Data("\(error)\n".utf8))
        exit(1)
      }
    }

    private static func run(_ arguments: [String]) throws {
      guard arguments.count >= 3 else { throw NotesError(usage) }
      let notebook = try Notebook(in: URL(fileURLWithPath: arguments[0]))
      let folder = SharedFolder(url: URL(fileURLWithPath: arguments[1]))
      let words = Array(arguments[3...])
      switch (arguments[2], words.count) {
      case ("join", 1):
        print("Tell others your fingerprint: \(try notebook.join(as: words[0], folder).fingerprint)")
      case ("meet", 1):
        let contact = try notebook.meet(words[0], fingerprint: nil, folder)
        print("Ask \(words[0]) whether this is their fingerprint: \(contact.fingerprintToConfirm)")
      case ("meet", 2):
        print("\(try notebook.meet(words[0], fingerprint: words[1], folder).name) is trusted")
      case ("list", 0): show(try notebook.notes())
      case ("add", 1...): try notebook.add(words.joined(separator: " "))
      case ("edit", 2...): try notebook.edit(number(words[0]), to: words.dropFirst().joined(separator: " "))
      case ("remove", 1): try notebook.remove(number(words[0]))
      case ("exchange", 0): try exchange(notebook, folder)
      case ("log", 0): try showLog(of: notebook)
      default: throw NotesError(usage)
      }
    }

    private static func number(_ word: String) throws -> Int {
      guard let number = Int(word) else { throw NotesError("\(word) is no number") }
      return number
    }

    private static func show(_ notes: [Note]) {
      for (place, note) in notes.enumerated() { print("\(place + 1)  \(note.text)") }
    }

    private static func exchange(_ notebook: Notebook, _ folder: SharedFolder) throws {
      // GRDB hears of what Buckia writes: an app with windows would show it there.
      let observation = notebook.onChange { notes in
        switch notes {
        case .success(let notes): show(notes)
        case .failure(let error): print(error)
        }
      }
      defer { observation.cancel() }
      for refused in try notebook.exchange(through: folder).rejected { print(refused.path, refused.reason ?? "") }
    }

    private static func showLog(of notebook: Notebook) throws {
      try notebook.queue.read { db in
        for diff in try LoggedDiff.orderByPrimaryKey().fetchAll(db) {
          print("\(diff.file): \(diff.state.rawValue), \(diff.inserted + diff.updated + diff.deleted) rows")
        }
        for conflict in try LoggedConflict.all().inTable("notes").orderByPrimaryKey().fetchAll(db) {
          print("conflict \(conflict.id): \(conflict.kind.rawValue), \(conflict.outcome.rawValue)")
        }
      }
    }
  }
#else
  @main
  enum NotesCommand {
    static func main() { print("This example needs GRDB: build it with --traits default,GRDB") }
  }
#endif
