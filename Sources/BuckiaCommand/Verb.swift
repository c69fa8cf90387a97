import ArgumentParser

/// One verb of the command line.
protocol Verb: ParsableCommand {
  /// How to print.
  var output: OutputOptions { get }

  /// Whether the result itself goes to standard output (`-o -`): all text goes to standard error then.
  var printsResult: Bool { get }

  /// Does the work, prints the result, and says how it went.
  ///
  /// - Throws: `ValidationError` for arguments that do not fit each other; anything else is reported and exits as its
  ///   kind demands.
  func perform(on console: Console) throws -> ExitStatus
}

extension Verb {
  var printsResult: Bool { false }

  /// Where the person's own files are.
  var home: HomeOptions { output.home }

  /// Runs the verb and turns what it throws into a message and an exit code.
  func run() throws {
    let console = Console(output, printsResult: printsResult)
    output.extendConnections()
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
