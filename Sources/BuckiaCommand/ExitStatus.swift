/// How a verb went: the exit codes that scripts rely on.
enum ExitStatus: Int32 {
  /// All done.
  case done = 0
  /// Something was refused or failed; the rest was done.
  case failed = 1
  /// A person has to decide.
  case needsPerson = 2
  /// The database is in use; trying again can help.
  case busy = 3
  /// The command was not understood.
  case usage = 64
  /// A person has stopped it, as shells say it: 128 and the number of the signal.
  case interrupted = 130
}
