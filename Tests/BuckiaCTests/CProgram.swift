import Foundation
import TestSupport
import Testing

/// A C program in this folder, compiled against the library built with the tests.
struct CProgram {
  struct Failure: Error, CustomStringConvertible { let description: String }

  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The path of a file in the package.
  static func file(_ path: String) -> String { root.appendingPathComponent(path).path }

  /// The header of the library.
  static var header: String {
    get throws { try String(contentsOfFile: file("Sources/CBuckia/include/buckia.h"), encoding: .utf8) }
  }

  /// The folder with the build's products.
  static var products: String {
    get throws {
      try URL(fileURLWithPath: BuiltProduct.path(of: libraryName)).deletingLastPathComponent().path
    }
  }

  #if os(macOS)
    static let libraryName = "libBuckiaC.dylib"
  #else
    static let libraryName = "libBuckiaC.so"
  #endif

  /// The library in the debug build.
  static var library: String { get throws { try "\(products)/\(libraryName)" } }

  /// True if `make library` has built the library with the current header.
  static let hasLibrary = FileManager.default.contentsEqual(
    atPath: file(".build/library/buckia.h"), andPath: file("Sources/CBuckia/include/buckia.h"))

  /// Why no C program can be compiled here; nil if one can. Clang comes with Swift.
  static let obstacle: String? = ProgramRun.path(of: "clang") == nil ? "clang is not on the PATH" : nil

  /// The library that a program is linked with.
  enum Linkage: String, Sendable {
    /// The library built with the tests.
    case debug
    /// The shared library of `make library`.
    case shared
    /// The static library of `make library`.
    case `static`

    /// The libraries that exist.
    static let available = [debug] + (CProgram.hasLibrary ? [shared, `static`] : [])

    private var built: String {
      CProgram.file(".build/library/libbuckia.\(self == .static ? "a" : CProgram.libraryName.split(separator: ".")[1])")
    }

    /// The linker's arguments.
    fileprivate var arguments: [String] {
      get throws {
        let libraries = ["-lsqlite3", "-lpthread", "-ldl"]
        switch self {
        case .debug:
          let products = try CProgram.products
          return ["-L", products, "-lBuckiaC", "-Wl,-rpath,\(products)"] + libraries
        case .shared: return [built, "-Wl,-rpath,\(CProgram.file(".build/library"))"] + libraries
        case .static: return [built] + libraries + ["-lzstd", "-lstdc++", "-lm"]
        }
      }
    }
  }

  /// Compiles a program in `Programs`, runs it in an empty folder or with arguments, and returns its output.
  ///
  /// - Throws: `Failure` with the output if the program does not compile, or does not exit with 0.
  static func run(
    _ name: String, _ arguments: [String] = [], in folder: TemporaryFolder, linkage: Linkage = .debug
  ) throws -> String {
    let program = folder.file(name)
    try run(
      "clang",
      [
        "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-I", file("Sources/CBuckia/include"),
        file("Tests/BuckiaCTests/Programs/\(name).c"), "-o", program,
      ] + linkage.arguments)
    guard arguments.isEmpty else { return try run(program, arguments) }
    let work = "\(name).work"
    try folder.makeFolder(work)
    return try run(program, [folder.file(work)])
  }

  /// Runs a tool, or a program by its path, and returns its output.
  @discardableResult
  static func run(_ tool: String, _ arguments: [String]) throws -> String {
    guard let path = tool.hasPrefix("/") ? tool : ProgramRun.path(of: tool) else {
      throw Failure(description: "\(tool) is not on the PATH")
    }
    let run = try ProgramRun(path, arguments)
    guard run.hasSucceeded else { throw Failure(description: "\(tool) ended with \(run.status): \(run.text)") }
    return run.text
  }
}
