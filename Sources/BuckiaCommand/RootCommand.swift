import ArgumentParser
import Buckia

/// `buckia`: the list of verbs.
struct RootCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "buckia",
    abstract: "Sends changes of one SQLite database to another person's, and applies what they send back.",
    discussion: """
      Anna ships what changed since she and Ben had the same rows:
        buckia diff before.sqlite now.sqlite -o outbox

      Ben puts the file into his inbound folder and applies it, once, whatever happens. His own diff is made from what the \
      snapshot keeps, so that nothing goes back to her that came from her. He makes that before he changes anything:
        buckia snapshot ben.sqlite -o shared.sqlite
        buckia apply ben.sqlite inbound --snapshot shared.sqlite
        buckia conflicts ben.sqlite
        buckia diff shared.sqlite ben.sqlite -o outbox

      Exit codes: 0 all done · 1 something was refused or failed, the rest was done · 2 needs a person · \
      3 busy, try again · 64 the command was not understood.
      """,
    version: Version.text,
    subcommands: [
      InitVerb.self, SnapshotVerb.self, DiffVerb.self, ShareVerb.self, InviteVerb.self, AcceptVerb.self, ApplyVerb.self,
      ShowVerb.self,
      VerifyVerb.self, LogVerb.self,
      ConflictsVerb.self, ResolveVerb.self, ServeVerb.self, UndoVerb.self, StatusVerb.self, BlameVerb.self,
      DoctorVerb.self,
      ChangesetVerb.self, MergeVerb.self, EncryptVerb.self, DecryptVerb.self, IdentityVerb.self, ContactVerb.self,
      SyncVerb.self, GitVerb.self, KSUIDVerb.self, BenchVerb.self, CompletionsVerb.self,
    ])
}
