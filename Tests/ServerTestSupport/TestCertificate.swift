import Foundation
import TestSupport

/// A certificate with its key, and the authority that has signed it, all made by the program openssl.
public final class TestCertificate: Sendable {
  private let folder: TemporaryFolder

  /// The certificate's file.
  public var certificate: String { folder.file("certificate.pem") }
  /// The key's file.
  public var key: String { folder.file("key.pem") }
  /// The file with the authority's certificate.
  public var authority: String { folder.file("authority.pem") }

  /// Makes a certificate.
  ///
  /// - Parameters:
  ///   - host: The name of the server.
  ///   - days: The number of days until it expires; negative for an expired certificate.
  public init(for host: String = "localhost", days: Int = 2) throws {
    folder = try TemporaryFolder()
    let authorityKey = folder.file("authority.key")
    let elliptic = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    try Self.openssl(
      ["req", "-x509", "-keyout", authorityKey, "-out", authority, "-days", "2", "-subj", "/CN=An authority"] + elliptic
    )
    let (request, names) = (folder.file("request.pem"), folder.file("names"))
    try Self.openssl(["req", "-keyout", key, "-out", request, "-subj", "/CN=\(host)"] + elliptic)
    try folder.write(Array("subjectAltName=DNS:\(host)\n".utf8), to: "names")
    try Self.openssl([
      "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authorityKey, "-CAcreateserial", "-out", certificate,
      "-days", "\(days)", "-extfile", names,
    ])
  }

  /// The SHA-256 of the public key in hexadecimal, computed by openssl and sha256sum as the documentation says.
  public func keyDigest() throws -> String {
    let command = "openssl x509 -in '\(certificate)' -pubkey -noout | openssl pkey -pubin -outform der | sha256sum"
    return String(try Self.run("/bin/sh", ["-c", command]).prefix(64))
  }

  private static func openssl(_ arguments: [String]) throws { _ = try run("/usr/bin/env", ["openssl"] + arguments) }

  private static func run(_ program: String, _ arguments: [String]) throws -> String {
    let run = try ProgramRun(program, arguments)
    guard run.hasSucceeded else {
      throw TestServer.StartFailure(description: "openssl failed; install Debian's package openssl: \(run.errors)")
    }
    return run.output
  }
}
