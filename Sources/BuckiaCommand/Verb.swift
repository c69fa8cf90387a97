import ArgumentParser

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
}

/// What every verb takes.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print one JSON document instead of text.")
  var json = false

  @Flag(help: "Print nothing but errors.")
  var quiet = false
}

/// One verb of the command line.
protocol Verb: ParsableCommand {
  /// How to print.
  var output: OutputOptions { get }

  /// Does the work, prints the result, and says how it went.
  ///
  /// - Throws: `ValidationError` for arguments that do not fit each other; anything else is reported and exits as its
  ///   kind demands.
  func perform(on console: Console) throws -> ExitStatus
}

extension Verb {
  /// Runs the verb and turns what it throws into a message and an exit code.
  func run() throws {
    let console = Console(output)
    var status: ExitStatus
    do {
      status = try perform(on: console)
      try console.flush()
    } catch let error where error is ValidationError || error is ExitCode || error is CleanExit {
      throw error
    } catch {
      status = console.report(ErrorReport(error))
    }
    guard status == .done else { throw ExitCode(status.rawValue) }
  }
}
