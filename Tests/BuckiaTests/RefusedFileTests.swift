import Buckia
import BuckiaFormat
import Foundation
import TestSupport
import Testing

/// The record of a refused file in the ledger.
@Suite struct RefusedFileTests {
  @Test(
    "A refused file is recorded by the bytes that were read, even if another file takes its name",
    arguments: ["bdiff", "changeset", "bdiff.age"])
  func digest(ofKind suffix: String) throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, n)")
    let id = Exchange.id(at: 1_600_000_000)
    let path = try exchange.folder.write(Array("not in order".utf8), to: "inbound/\(id).\(suffix)")
    let read = try FileDigest.sha256(at: path).sha256
    let report = try exchange.database.processInboundChanges(
      [exchange.inbound],
      progress: { progress in
        // The file has been opened, and is refused next.
        guard progress.path == path else { return }
        try Data("another file".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
      })
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.warnings.isEmpty == true)
    let hex = read.bytes.map { String(format: "%02X", $0) }.joined()
    #expect(try exchange.rows("SELECT count(*) FROM buckia_refused WHERE hex(digest) = '\(hex)'") == ["1"])
    #expect(try exchange.rows("SELECT count(*) FROM buckia_refused") == ["1"])
  }
}
