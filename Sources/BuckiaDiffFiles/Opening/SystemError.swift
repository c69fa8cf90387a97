#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension DiffFileError {
  /// A failed system call.
  ///
  /// - Parameters:
  ///   - action: What was tried, as in "it cannot be opened".
  ///   - otherwise: The code when the error number says nothing particular.
  static func system(
    _ action: String, errno number: Int32, path: String, otherwise: Code
  ) -> DiffFileError {
    DiffFileError(
      code(ofSystemError: number, otherwise: otherwise), "\(action): \(String(cString: strerror(number)))",
      path: path, systemError: number)
  }

  static func code(ofSystemError number: Int32, otherwise: Code) -> Code {
    switch number {
    case ENOSPC, EDQUOT: .fullDisk
    case EMFILE, ENFILE: .tooManyOpenFiles
    case ENOMEM: .outOfMemory
    case EEXIST: .alreadyExists
    default: otherwise
    }
  }
}
