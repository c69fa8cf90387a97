#if !Command
  #error("The command line is built with the trait Command: make build, or swift build --traits default,Command")
#endif

import ArgumentParser
import Buckia

/// The start of the program: reads the arguments, runs the command, and converts failures to exit codes.
@main
enum EntryPoint {
  static func main() {
    heedSignals()
    keepFreedMemory()
    do {
      try RootCommand.requireUTF8()
      try RootCommand.refuseUnknownCommand(in: Array(CommandLine.arguments.dropFirst()))
      var command = try RootCommand.parseAsRoot()
      try command.run()
    } catch {
      // Help and the version end up here too, with exit code 0; an exit code alone means the command has reported already.
      let status = RootCommand.exitCode(for: error)
      guard !(error is ExitCode), status == .validationFailure else { RootCommand.exit(withError: error) }
      if CommandLine.arguments.contains("--json") {
        print(ErrorReport(usage: RootCommand.message(for: error)).failure.json.prettyText())
      }
      let message = RootCommand.escaped(in: RootCommand.fullMessage(for: error))
      StandardStream.error.tell("\(Style.ofMessages().wrapped(message: message))\n")
      exit(status.rawValue)
    }
  }

  /// Keeps freed memory for later: glibc would return it to the system, and request it again, with every piece of a
  /// file. It raises its limits when a larger block is freed (mallopt(3), `M_MMAP_THRESHOLD`).
  private static func keepFreedMemory() {
    #if canImport(Glibc)
      UnsafeMutableRawBufferPointer.allocate(byteCount: 4 << 20, alignment: 16).deallocate()
    #endif
  }

  /// Unblocks the signals that end the program: it inherits the blocked ones of the thread that has started it, and
  /// threads of Dispatch block all.
  private static func heedSignals() {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, number) }
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }
}
