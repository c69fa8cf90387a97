import BuckiaBytes
import AsyncHTTPClient
import BuckiaStorage

/// The proxies in the environment. There is no standard; this follows curl's documentation:
/// <https://curl.se/docs/manpage.html#ENVIRONMENT>.
struct ProxyEnvironment: Sendable, Equatable {
  /// A proxy.
  struct Server: Sendable, Hashable {
    let host: String
    let port: Int
    /// A user's name and password, with a colon in between.
    let credentials: String?
  }

  private let secure: Server?
  private let plain: Server?
  private let exceptions: [String]

  /// - Parameter variables: The variables of the environment.
  /// - Throws: `StorageError` with `invalidSetting` when a variable is no address of a proxy.
  init(_ variables: [String: String]) throws(StorageError) {
    func value(_ names: String...) -> (name: String, value: String)? {
      for name in names { if let value = variables[name], !value.isEmpty { return (name, value) } }
      return nil
    }
    let all = value("all_proxy", "ALL_PROXY")
    secure = try Self.server(value("https_proxy", "HTTPS_PROXY") ?? all)
    // HTTP_PROXY in capitals is ignored, because a web server sets it from a request header.
    plain = try Self.server(value("http_proxy") ?? all)
    exceptions = (value("no_proxy", "NO_PROXY")?.value ?? "").lowercased().split { $0 == "," || $0 == " " }.map(
      String.init)
  }

  /// The proxy for a server; nil for none.
  func server(for address: HTTPAddress) -> Server? {
    guard let proxy = address.isSecure ? secure : plain else { return nil }
    let host = address.host.trimmingBrackets()
    for exception in exceptions {
      if exception == "*" { return nil }
      let name = exception.hasPrefix(".") ? String(exception.dropFirst()) : exception
      if host == name || host.hasSuffix(".\(name)") || address.authority == name { return nil }
    }
    return proxy
  }

  private static func server(_ variable: (name: String, value: String)?) throws(StorageError) -> Server? {
    guard let variable else { return nil }
    var text = variable.value.contains("://") ? variable.value : "http://\(variable.value)"
    guard text.lowercased().hasPrefix("http://") else {
      throw StorageError(
        .invalidSetting, "\(variable.name) names a proxy of a kind that is not supported; only http:// is")
    }
    var credentials: String?
    let start = text.index(text.startIndex, offsetBy: 7)
    let end = text[start...].firstIndex(of: "/") ?? text.endIndex
    if let at = text[start..<end].lastIndex(of: "@") {
      credentials = text[start..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        .compactMap { PercentEncoding.decoded($0) }.joined(separator: ":")
      text.removeSubrange(start...at)
    }
    do {
      let address = try HTTPAddress(text)
      return Server(host: address.host.trimmingBrackets(), port: address.port ?? 80, credentials: credentials)
    } catch {
      throw StorageError(
        .invalidSetting, "\(variable.name) is no address of a proxy, such as http://proxy.example:3128")
    }
  }
}

extension String {
  /// An IPv6 address without its brackets.
  fileprivate func trimmingBrackets() -> String {
    hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self
  }
}

extension ProxyEnvironment.Server {
  /// The proxy as the client takes it.
  var configuration: HTTPClient.Configuration.Proxy {
    let authorization = credentials.map { credentials in
      let parts = credentials.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      return HTTPClient.Authorization.basic(
        username: String(parts.first ?? ""), password: parts.count > 1 ? String(parts[1]) : "")
    }
    return .server(host: host, port: port, authorization: authorization)
  }
}
