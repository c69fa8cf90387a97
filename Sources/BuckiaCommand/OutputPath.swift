import ArgumentParser
import Buckia

/// The target of `-o`: a folder, which gets a file named by its id, the file itself, or standard output.
enum OutputPath {
  /// The argument for standard output.
  static let standardOutput = "-"

  /// The help text of the option.
  static let help = """
    A folder, which is made when it is missing and gets a file named by its id; a path that ends in .bdiff or .changeset, or \
    names an existing file, is the file itself; - is standard output. The current folder by default.
    """

  /// Refuses options that would write two results to standard output.
  static func validate(_ option: String?, _ output: OutputOptions) throws {
    guard !output.json || option != standardOutput else {
      throw ValidationError("--json and -o - would both write to standard output; choose one.")
    }
  }

  /// The option for the façade; without it, the current folder.
  static func diffOutput(_ option: String?, replacing: Bool) -> DiffOutput {
    guard let option else { return .folder(".") }
    return option == standardOutput
      ? .stream { try StandardStream.output.write($0) } : .path(option, replacing: replacing)
  }
}
