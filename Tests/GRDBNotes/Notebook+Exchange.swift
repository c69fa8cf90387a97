#if GRDB
  import Buckia
  import BuckiaGRDB
  import Foundation
  import GRDB

  /// A folder that everybody can read and write: a share of a server, a synchronised folder, a USB stick. No one has
  /// to trust it.
  struct SharedFolder {
    let url: URL

    /// The file with a person's card.
    func card(of name: String) -> String { url.appendingPathComponent("\(name).card").path }

    /// The folder with what is for a person.
    func inbound(of name: String) throws -> String {
      let folder = url.appendingPathComponent("for \(name)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      return folder.path
    }
  }

  extension Notebook {
    /// Makes the person's keys, and puts what others may know of them into the folder.
    func join(as name: String, _ folder: SharedFolder) throws -> Identity {
      let me = try home.makeIdentity(named: name)
      try Data("\(me.card)\n".utf8).write(to: URL(fileURLWithPath: folder.card(of: name)))
      return me
    }

    /// Gets to know somebody from the card in the folder, and trusts them once their fingerprint has been compared.
    func meet(_ name: String, fingerprint: String?, _ folder: SharedFolder) throws -> Contact {
      try home.addContact(contentsOf: folder.card(of: name))
      guard let fingerprint else { return try home.contact(named: name) }
      guard let compared = Fingerprint(fingerprint) else { throw NotesError("\(fingerprint) is no fingerprint") }
      return try home.trustContact(name, fingerprint: compared)
    }

    /// Applies what others have sent, and sends everybody who is trusted what has changed since the last time.
    func exchange(through folder: SharedFolder) throws -> ApplyReport {
      let me = try home.identity()
      let others = try home.contacts().all.filter { $0.state == .trusted }
      let scope = ShareScope(name: "notes") { SharedTable("notes") }
      return try queue.withBuckia(home: home) { buckia in
        let report = try buckia.processInboundChanges([folder.inbound(of: me.name)], options: Self.applyOptions)
        for other in others {
          try buckia.share(
            scope, to: [ShareRecipient(other)], output: .folder(folder.inbound(of: other.name)), signedBy: me)
        }
        return report
      }
    }

    /// Calls a closure with the notes when a transaction of any writer has changed them.
    func onChange(_ show: @escaping @Sendable (Result<[Note], any Error>) -> Void) -> AnyDatabaseCancellable {
      DatabaseRegionObservation(tracking: Note.all()).start(in: queue) { error in
        show(.failure(error))
      } onChange: { db in
        show(Result { try Note.all().inOrder().fetchAll(db) })
      }
    }
  }
#endif
