import Crypto
import NIOConcurrencyHelpers
import ServerTestSupport

@testable import BuckiaRemoteStorage

/// A server that does what the documentation of Bunny.net's storage API says.
final class BunnyStandIn: Sendable {
  static let password = "zone password"

  private let server: FaultServer
  var address: String { server.address }
  var requests: [FaultServer.Request] { server.requests }

  init() async throws {
    let objects = NIOLockedValueBox<[String: [UInt8]]>([:])
    server = try await FaultServer { request in
      guard request.header("AccessKey") == Self.password else {
        return .answer(401, body: Array(#"{"HttpCode":401,"Message":"Unauthorized"}"#.utf8))
      }
      let encoded = request.target.split(separator: "?")[0]
      guard let path = PercentEncoding.decoded(encoded), path.hasPrefix("/zone/") else { return .answer(404) }
      switch request.method {
      case "PUT":
        let digest = SHA256.hash(data: request.body).map {
          ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true)
        }
        guard request.header("Checksum") == nil || request.header("Checksum") == digest.joined() else {
          return .answer(400)
        }
        objects.withLockedValue { $0[path] = request.body }
        return .answer(201)
      case "DELETE":
        let found = objects.withLockedValue { $0.removeValue(forKey: path) }
        return .answer(found == nil ? 404 : 200)
      case "GET" where path.hasSuffix("/"): return Self.listing(of: path, objects.withLockedValue { $0 })
      case "GET":
        guard let body = objects.withLockedValue({ $0[path] }) else {
          return .answer(404, body: Array(#"{"HttpCode":404,"Message":"Object Not Found"}"#.utf8))
        }
        return .answer(200, headers: [("Last-Modified", "Tue, 24 Nov 2026 10:00:00 GMT")], body: body)
      default: return .answer(405)
      }
    }
  }

  private static func listing(of folder: String, _ objects: [String: [UInt8]]) -> FaultServer.Behaviour {
    var folders: Set<String> = []
    var items: [String] = []
    for (path, body) in objects where path.utf8.starts(with: folder.utf8) {
      let rest = String(decoding: Array(path.utf8.dropFirst(folder.utf8.count)), as: UTF8.self)
      if let slash = rest.utf8.firstIndex(of: UInt8(ascii: "/")) {
        folders.insert(String(Substring(rest.utf8[..<slash])))
      } else {
        let digest = SHA256.hash(data: body).map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
        items.append(item(rest, body.count, isFolder: false, digest.joined()))
      }
    }
    items += folders.map { item($0, 0, isFolder: true, "") }
    return .answer(
      200, headers: [("Content-Type", "application/json")], body: Array("[\(items.joined(separator: ","))]".utf8))
  }

  private static func item(_ name: String, _ length: Int, isFolder: Bool, _ checksum: String) -> String {
    let escaped = name.map { $0 == "\\" || $0 == "\"" ? "\\\($0)" : "\($0)" }.joined()
    return """
      {"Guid":"5f4e","StorageZoneName":"zone","Path":"/zone/","ObjectName":"\(escaped)","Length":\(length),\
      "LastChanged":"2026-11-24T10:00:00.123","ServerId":5,"ArrayNumber":0,"IsDirectory":\(isFolder),"UserId":"u",\
      "ContentType":"","DateCreated":"2026-11-24T09:00:00.1","StorageZoneId":7,"Checksum":"\(checksum)"}
      """
  }
}
