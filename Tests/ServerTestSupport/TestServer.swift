import Foundation
import TestSupport

/// A server that a script under `Tests/Servers` starts, on a port of the loopback interface. It ends with the process that started it.
public final class TestServer: Sendable {
  /// Why a server could not be started: nothing is skipped where one is missing.
  public struct StartFailure: Error, CustomStringConvertible {
    /// What happened, and what to install.
    public let description: String

    init(description: String) { self.description = description }
  }

  /// The port.
  public let port: Int
  /// The holder of the other end of this pipe keeps the server alive.
  private let lifeline: FileHandle

  /// Lives as long as the server does, which may still read it.
  private let certificate: TestCertificate?

  /// The address of the server.
  public var address: String { certificate == nil ? "http://127.0.0.1:\(port)" : "https://localhost:\(port)" }
  /// The certificate of the authority that has signed the server's; nil where connections are not encrypted.
  public var authority: String? { certificate?.authority }

  /// Starts a server, and waits until it answers.
  ///
  /// - Parameters:
  ///   - name: The script's name.
  ///   - arguments: What the script is told.
  ///   - certificate: The server's certificate, which the script is told of; nil for connections that are not encrypted.
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
  /// moto's S3, for all tests of a process: each has a bucket of its own.
  public static let s3 = Result { try TestServer("s3") }
  /// Apache's WebDAV: each test has a folder of its own.
  public static let apache = Result { try TestServer("apache") }
  /// WsgiDAV: each test has a folder of its own.
  public static let wsgidav = Result { try TestServer("wsgidav") }
  /// rclone's WebDAV: each test has a folder of its own.
  public static let rclone = Result { try TestServer("rclone") }
  /// nginx's WebDAV: each test has a folder of its own.
  public static let nginx = Result { try TestServer("nginx") }
  /// lighttpd's WebDAV: each test has a folder of its own.
  public static let lighttpd = Result { try TestServer("lighttpd") }
  /// rclone's S3; nil where rclone has none yet.
  public static let rcloneS3 = Result { () throws -> TestServer? in
    let help = try ProgramRun("/usr/bin/env", ["rclone", "serve", "s3", "--help"])
    return help.output.contains("--auth-key") ? try TestServer("rclone-s3") : nil
  }
  /// A proxy for the servers of this computer.
  public static let proxy = Result { try TestServer("apache", ["proxy"]) }
}
