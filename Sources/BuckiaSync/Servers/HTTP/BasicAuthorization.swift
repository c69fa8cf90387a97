import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Basic authentication (RFC 7617).
package struct BasicAuthorization: RequestAuthorization {
  private let field: String

  /// - Throws: `StorageError` with `invalidSetting` for a name with a colon, which could not be told from the password.
  package init(user: String, password: String) throws(StorageError) {
    guard !user.contains(":") else { throw StorageError(.invalidSetting, "a user's name for WebDAV has no colon") }
    field = "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
  }

  package func authorize(_ request: inout HTTPTransportRequest) { request.headers["Authorization"] = field }
}
