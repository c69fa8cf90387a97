import AsyncHTTPClient
import NIOConcurrencyHelpers

/// The clients that go through a proxy: one for each, made when it is first needed.
final class ProxiedClients: Sendable {
  private let clients = NIOLockedValueBox<[ProxyEnvironment.Server: HTTPClient]>([:])

  var all: [HTTPClient] { clients.withLockedValue { Array($0.values) } }

  func client(
    for server: ProxyEnvironment.Server, _ make: (HTTPClient.Configuration.Proxy?) -> HTTPClient
  ) -> HTTPClient {
    clients.withLockedValue { known in
      if let client = known[server] { return client }
      let client = make(server.configuration)
      known[server] = client
      return client
    }
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
