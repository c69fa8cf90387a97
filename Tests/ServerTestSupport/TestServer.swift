import Foundation
import TestSupport

/// A server that a script under `Tests/Servers` starts, on a port of the loopback interface. It ends with the process
/// that started it.
public final class TestServer: Sendable {
  /// The error if a server cannot be started. Tests are not skipped if a server is missing.
  public struct StartFailure: Error, CustomStringConvertible {
    /// What happened, and what to install.
    public let description: String

    init(description: String) { self.description = description }
  }

  /// The port.
  public let port: Int
  /// The server runs as long as this end of the pipe is open.
  private let lifeline: FileHandle

  /// Kept as long as the server, which may still read the files.
  private let certificate: TestCertificate?

  /// The address of the server.
  public var address: String { certificate == nil ? "http://127.0.0.1:\(port)" : "https://localhost:\(port)" }
  /// The certificate of the authority that has signed the server's; nil if connections are not encrypted.
  public var authority: String? { certificate?.authority }

  /// Starts a server, and waits until it answers.
  ///
  /// - Parameters:
  ///   - name: The script's name.
  ///   - arguments: The script's arguments.
  ///   - certificate: The server's certificate, which is passed to the script; nil for unencrypted connections.
  public init(_ name: String, _ arguments: [String] = [], certificate: TestCertificate? = nil) throws {
    self.certificate = certificate
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let process = Process()
    process.executableURL = folder.appendingPathComponent("Servers/\(name)")
    process.arguments = arguments + (certificate.map { [$0.certificate, $0.key] } ?? [])
    let (input, output, errors) = (Pipe(), Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    lifeline = input.fileHandleForWriting
    var line = Data()
    while let byte = try output.fileHandleForReading.read(upToCount: 1), !byte.isEmpty, byte != Data("\n".utf8) {
      line += byte
    }
    guard let number = Int(String(decoding: line, as: UTF8.self)) else {
      let reason = try errors.fileHandleForReading.readToEnd() ?? Data()
      throw StartFailure(description: "\(name) did not start: \(String(decoding: reason, as: UTF8.self))")
    }
    port = number
  }

  deinit {
    do { try lifeline.close() } catch { print("the server is still there: \(error)") }
  }
}

extension TestServer {
  /// moto's S3, for all tests of a process: each has its own bucket.
  public static let s3 = Result { try TestServer("s3") }
  /// Apache's WebDAV: each test has its own folder.
  public static let apache = Result { try TestServer("apache") }
  /// WsgiDAV: each test has its own folder.
  public static let wsgidav = Result { try TestServer("wsgidav") }
  /// rclone's WebDAV: each test has its own folder.
  public static let rclone = Result { try TestServer("rclone") }
  /// nginx's WebDAV: each test has its own folder.
  public static let nginx = Result { try TestServer("nginx") }
  /// lighttpd's WebDAV: each test has its own folder.
  public static let lighttpd = Result { try TestServer("lighttpd") }
  /// rclone's S3; nil if the installed version has none.
  public static let rcloneS3 = Result { () throws -> TestServer? in
    let help = try ProgramRun("/usr/bin/env", ["rclone", "serve", "s3", "--help"])
    return help.output.contains("--auth-key") ? try TestServer("rclone-s3") : nil
  }
  /// A proxy for the servers on this computer.
  public static let proxy = Result { try TestServer("apache", ["proxy"]) }
}
