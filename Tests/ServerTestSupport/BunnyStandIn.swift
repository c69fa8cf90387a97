import BuckiaBytes
import Crypto
import Foundation
import NIOConcurrencyHelpers

/// A server that behaves as the documentation of Bunny.net's storage API says.
public final class BunnyStandIn: Sendable {
  /// The password of the zone, which is named `zone`.
  public static let password = "zone password"

  private let server: FaultServer
  /// The address.
  public var address: String { server.address }
  /// The received requests, in order.
  public var requests: [FaultServer.Request] { server.requests }

  /// Starts a server with an empty zone.
  public init() async throws {
    let objects = NIOLockedValueBox<[String: [UInt8]]>([:])
    server = try await FaultServer { request in
      guard request.header("AccessKey") == Self.password else {
        return .answer(401, body: Array(#"{"HttpCode":401,"Message":"Unauthorized"}"#.utf8))
      }
      let encoded = String(request.target.split(separator: "?")[0])
      guard let path = encoded.removingPercentEncoding, path.hasPrefix("/zone/") else { return .answer(404) }
      switch request.method {
      case "PUT":
        // Content with another digest than announced is not stored.
        guard request.header("Checksum") == nil || request.header("Checksum") == Self.digest(request.body) else {
          return .answer(400, body: Array(#"{"HttpCode":400,"Message":"Checksum does not match"}"#.utf8))
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
        return Self.object(body, range: request.header("Range"))
      default: return .answer(405)
      }
    }
  }

  private static func digest(_ body: [UInt8]) -> String {
    SHA256.hash(data: body).map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
  }

  /// An object, or the part of it that a `Range` field requests (RFC 9110, section 14.2).
  private static func object(_ body: [UInt8], range: String?) -> FaultServer.Behaviour {
    let headers = [("Last-Modified", "Tue, 24 Nov 2026 10:00:00 GMT")]
    guard let range else { return .answer(200, headers: headers, body: body) }
    let ends = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
    guard range.hasPrefix("bytes="), ends.count == 2, let start = Int(ends[0]) else { return .answer(400) }
    guard start < body.count else {
      return .answer(416, headers: headers + [("Content-Range", "bytes */\(body.count)")])
    }
    let end = min(Int(ends[1]) ?? Int.max, body.count - 1)
    guard start <= end else { return .answer(400) }
    let part = ("Content-Range", "bytes \(start)-\(end)/\(body.count)")
    return .answer(206, headers: headers + [part], body: Array(body[start...end]))
  }

  private static func listing(of folder: String, _ objects: [String: [UInt8]]) -> FaultServer.Behaviour {
    var folders: Set<String> = []
    var items: [String] = []
    for (path, body) in objects where path.utf8.starts(with: folder.utf8) {
      let rest = String(decoding: Array(path.utf8.dropFirst(folder.utf8.count)), as: UTF8.self)
      if let slash = rest.utf8.firstIndex(of: UInt8(ascii: "/")) {
        folders.insert(String(Substring(rest.utf8[..<slash])))
      } else {
        items.append(item(rest, body.count, isFolder: false, digest(body)))
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
