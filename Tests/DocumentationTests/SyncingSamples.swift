import BuckiaSync
import TestSupport
import Testing

@Suite("Samples about syncing")
struct SyncingSamples {
  private let folder: TemporaryFolder
  private let notes: String
  private let files: String
  private let storage: String
  private let outbox: String

  init() throws {
    folder = try TemporaryFolder()
    notes = try TestDatabases.run(
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT)", on: folder.file("notes.sqlite"))
    files = folder.file("files")
    storage = folder.file("storage")
    outbox = folder.file("outbox")
    try folder.makeFolder("outbox")
  }

  private func client() throws -> BuckiaClient {
    try BuckiaClient(
      BuckiaConfiguration(
        userID: "7f3a91", database: DatabaseManager(notes), folders: FolderStructureConfiguration(main: files),
        storage: StorageAccount(.localFolder(storage))))
  }

  @Test("A round is run")
  func round() async throws {
    var configuration = BuckiaConfiguration(
      userID: "7f3a91", database: DatabaseManager(notes),
      folders: FolderStructureConfiguration(main: files), storage: StorageAccount(.localFolder(storage)))
    configuration.deliveries = [BuckiaConfiguration.Delivery(from: outbox, to: "9c21b4")]
    let client = try BuckiaClient(configuration)
    let result = try await client.sync()
    print(result.uploaded.map(\.path), result.delivered.count, result.failures.count)
    #expect(result.uploaded.map(\.path.folder?.text) == ["7f3a91/backups"])
  }

  @Test("A server is described, and its name has no secret")
  func server() throws {
    let secret = "hidden"
    let bucket = S3Configuration(
      endpoint: "https://s3.eu-central-1.amazonaws.com", region: "eu-central-1", bucket: "anna", style: .virtualHost)
    var account = StorageAccount(.s3(bucket, S3Credentials(accessKey: "AKIAEXAMPLE", secret: secret)))
    account.http.idleSeconds = 30
    account.http.retries.attempts = 8
    #expect(try account.provider().name == "https://anna.s3.eu-central-1.amazonaws.com/")
  }

  @Test("A storage is tried out")
  func probe() async throws {
    let account = StorageAccount(.localFolder(storage))
    let found = try await StorageProbe.run(on: account.provider())
    print(found.putsIfAbsent, found.readsRanges)
    #expect(found.putsIfAbsent)
  }

  @Test("A provider of one's own is checked")
  func conformance() async throws {
    let provider = LocalFolder(storage)
    let faults = try await StorageConformance.run(on: provider, in: RemotePath("conformance"))
    print(faults)
    #expect(faults.isEmpty)
  }

  @Test("A backup is restored")
  func restore() async throws {
    let client = try client()
    _ = try await client.sync()
    let restored = folder.file("restored.sqlite")
    let point = try await client.restoreBackup(to: restored)
    print(point.id, point.time)
    #expect(point.sequence == 1)
  }
}
