import BuckiaBytes
import BuckiaStorage
import Testing

@testable import BuckiaSync

@Suite("Permissions for a storage")
struct StoragePermissionsTests {
  private func path(_ text: String) throws -> RemotePath { try RemotePath(text) }

  @Test("Reading everything and writing one folder allows just that")
  func readAllWriteInbound() throws {
    let permissions = StoragePermissions.readingAll(writing: try path("7f3a/inbound"))
    #expect(permissions.allow(.read, try path("any/thing")))
    #expect(permissions.allow(.list, try path("any/thing")))
    #expect(permissions.allow(.write, try path("7f3a/inbound/1.bdiff")))
    #expect(permissions.allow([.read, .write], try path("7f3a/inbound/sub/1.bdiff")))
    #expect(!permissions.allow(.write, try path("7f3a/backup.sqlite")))
    #expect(!permissions.allow(.delete, try path("7f3a/inbound/1.bdiff")))
    #expect(
      permissions.description == "read, list in the whole storage; write in 7f3a/inbound/")
  }

  @Test(
    "A folder is no prefix of a name",
    arguments: ["7f3a/inbound", "7f3a/inbound2/1", "7f3a/inboun", "7f3a", "x/7f3a/inbound/1", "7f3a/inbound\u{301}/1"])
  func folderBoundary(_ text: String) throws {
    let permissions = StoragePermissions.none.adding(.all, in: try path("7f3a/inbound"))
    #expect(!permissions.allow(.read, try path(text)))
  }

  @Test("Nothing is allowed without a rule, and full permissions allow everything")
  func extremes() throws {
    #expect(StoragePermissions.none.allowed(try path("a")) == [])
    #expect(StoragePermissions.full.allowed(try path("a/b")) == .all)
    #expect(StoragePermissions([.init([], in: .everywhere)]) == .none)
    #expect(StoragePermissions.none.description == "nothing")
  }

  @Test("Permissions are a subset if the others allow each action everywhere")
  func subsets() throws {
    let inbound = StoragePermissions.none.adding([.read, .write], in: try path("a/inbound"))
    let split = StoragePermissions.none.adding(.read, in: try path("a")).adding(.write, in: try path("a/inbound"))
    #expect(inbound.isSubset(of: split))
    #expect(!split.isSubset(of: inbound))
    #expect(inbound.isSubset(of: .full))
    #expect(!StoragePermissions.reading.isSubset(of: inbound))
    #expect(StoragePermissions.none.adding(.read, to: try path("a/x")).isSubset(of: split))
    #expect(!StoragePermissions.none.adding(.write, to: try path("a/x")).isSubset(of: split))
    #expect(StoragePermissions.none.isSubset(of: .none))
  }

  @Test("Permissions survive being written as a claim")
  func claim() throws {
    let permissions = StoragePermissions.readingAll(writing: try path("7f3a/inbound"))
      .adding([.write, .delete], to: try path("7f3a/backup.sqlite"))
    #expect(
      permissions.document.text()
        == #"[{"actions":["read","list"]},{"actions":["write"],"prefix":"7f3a/inbound/"},"#
        + #"{"actions":["write","delete"],"prefix":"7f3a/backup.sqlite"}]"#)
    #expect(StoragePermissions(permissions.document) == permissions)
  }

  @Test(
    "A claim that is not fully understood allows nothing",
    arguments: [
      "{}", "7", "[7]", "[{}]", #"[{"actions":"read"}]"#, #"[{"actions":["read","fly"]}]"#, #"[{"actions":[7]}]"#,
      #"[{"actions":["read"],"prefix":""}]"#, #"[{"actions":["read"],"prefix":"/"}]"#,
      #"[{"actions":["read"],"prefix":"a/../b/"}]"#, #"[{"actions":["read"],"prefix":7}]"#,
      #"[{"actions":["read"],"prefix":null}]"#, #"[{"actions":["read"],"not_before":"tomorrow"}]"#,
      #"[{"actions":["read"],"prefix":"a/","suffix":".txt"}]"#,
    ])
  func damagedClaim(_ text: String) throws {
    #expect(StoragePermissions(try JSONParser.parse(Array(text.utf8))) == nil)
  }
}
