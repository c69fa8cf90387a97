import Foundation
import TestSupport

/// A certificate for `localhost` and its key, which the program openssl makes: nobody vouches for it but itself.
public struct TestCertificate {
  private let folder: TemporaryFolder

  /// The certificate's file.
  public var certificate: String { folder.file("certificate.pem") }
  /// The key's file.
  public var key: String { folder.file("key.pem") }

  /// Makes one.
  public init() throws {
    folder = try TemporaryFolder()
    _ = try Self.openssl([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
      certificate, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
    ])
  }

  /// The SHA-256 of the public key in hexadecimal, computed by openssl and sha256sum as the documentation says.
  public func keyDigest() throws -> String {
    let command = "openssl x509 -in '\(certificate)' -pubkey -noout | openssl pkey -pubin -outform der | sha256sum"
    return String(try Self.run("/bin/sh", ["-c", command]).prefix(64))
  }

  private static func openssl(_ arguments: [String]) throws -> String {
    try run("/usr/bin/env", ["openssl"] + arguments)
  }

  private static func run(_ program: String, _ arguments: [String]) throws -> String {
    let run = try ProgramRun(program, arguments)
    guard run.hasSucceeded else {
      throw TestServer.StartFailure(description: "openssl failed; install Debian's package openssl: \(run.errors)")
    }
    return run.output
  }
}
