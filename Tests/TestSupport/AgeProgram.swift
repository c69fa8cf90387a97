import Foundation

/// The installed `age` program.
public enum AgeProgram {
  private static let folders = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]
  private static func path(_ name: String) -> String? {
    folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// True if `age` is installed.
  public static let isInstalled = path("age") != nil && path("age-keygen") != nil
  /// Why tests that need `age` do not run.
  public static let requirement = "age is not installed (make test installs it)"

  private struct NotInstalled: Error { let name: String }

  /// Runs the program, and returns its exit code.
  @discardableResult
  public static func run(_ name: String = "age", _ arguments: [String]) throws -> Int32 {
    guard let path = path(name) else { throw NotInstalled(name: name) }
    return try ProgramRun(path, arguments).status
  }

  /// Runs the program in a terminal, and types the passphrase whenever it asks for one.
  public static func run(typing passphrase: String, _ arguments: [String]) throws -> Int32 {
    guard let path = path("age") else { throw NotInstalled(name: "age") }
    return try ProgramRun("/usr/bin/env", ["python3", "-c", terminal, passphrase, path] + arguments).status
  }

  /// A Python program that answers each prompt once, and exits as the program in the terminal does.
  private static let terminal = #"""
    import os, pty, re, signal, sys

    signal.alarm(120)
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.argv[2], sys.argv[2:])
    shown, answers = b"", 0
    while True:
        try:
            piece = os.read(terminal, 1024)
        except OSError:
            break
        if not piece:
            break
        shown += piece
        while answers < len(re.findall(rb"passphrase[^:\n]*:", shown)):
            os.write(terminal, sys.argv[1].encode() + b"\n")
            answers += 1
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.exit(code if answers else 99)
    """#
}
