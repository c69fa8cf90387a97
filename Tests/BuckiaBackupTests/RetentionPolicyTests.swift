import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import Testing

@testable import BuckiaBackup

/// Which points a policy keeps.
@Suite struct RetentionPolicyTests {
  @Test func `rules are read, and other text is refused`() throws {
    let policy = try RetentionPolicy("last=3, hourly=24,daily=30,weekly=8,monthly=12,yearly=5,days=7,size=10G")
    #expect(policy.last == 3 && policy.hourly == 24 && policy.daily == 30 && policy.weekly == 8)
    #expect(policy.monthly == 12 && policy.yearly == 5 && policy.days == 7 && policy.byteLimit == 10 << 30)
    for text in [
      "", "last", "last=", "last=0", "last=-1", "last=3K", "size=7", "sometimes=3", "last=99999999999999999999",
    ] {
      #expect(throws: BuckiaError.self, "\(text)") { try RetentionPolicy(text) }
    }
  }

  @Test(arguments: [
    ("last=3", 3), ("hourly=24", 24), ("daily=3", 3), ("weekly=2", 2), ("monthly=3", 3), ("yearly=2", 2),
    ("days=1", 25), ("last=2,daily=3", 4), ("size=40K", 10), ("size=1K", 1), ("last=5,size=8K", 2),
  ])
  func `a policy keeps the newest points of its periods`(rules: String, count: Int) throws {
    // A point an hour for 400 days, each of 4 KiB; the newest at noon of 2 January 2026.
    let end: Int64 = 1_767_355_200_000
    let objects = try (0..<9_600).map { hour in
      try BackupObject.sample(hour + 1, at: end - Int64(9_599 - hour) * 3_600_000)
    }
    let kept = try RetentionPolicy(rules).kept(of: objects, now: end)
    #expect(kept.count == count)
    #expect(objects.last.map { kept.contains($0.id) } == true)
  }
}

extension BackupObject {
  /// An object of no pages.
  fileprivate static func sample(_ number: Int, at time: Int64) throws -> BackupObject {
    let digest = ContentDigest(of: [])
    let point = try BackupPoint(
      id: KSUID(timestamp: UInt32(number), payloadHigh: 0, payloadLow: 0),
      historyID: BackupPoint.HistoryID(checked: Array(repeating: 0, count: 16)), sequence: Int64(number), time: time,
      note: nil, for: nil, pageSize: 4_096, pageCount: 1, isBeforeRestore: false, sum: PageSum(), previous: nil,
      signer: nil)
    return try BackupObject(
      point: point, digest: digest,
      payload: Payload(
        base: nil, pageCount: 0, byteCount: 0, digest: digest, isEncrypted: false, signer: nil),
      path: RemotePath("\(number)"))
  }
}
