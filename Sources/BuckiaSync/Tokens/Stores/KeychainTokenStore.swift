#if canImport(Security)
  import Foundation
  import Security

  /// Keeps tokens in the keychain, for this app on this device alone.
  public struct KeychainTokenStore: TokenStore {
    private let service: String
    private let accessGroup: String?

    /// Names a place in the keychain.
    ///
    /// - Parameters:
    ///   - service: What the keychain calls the app, such as `com.example.notes`.
    ///   - accessGroup: The group of apps that share the tokens; nil for none.
    public init(service: String, accessGroup: String? = nil) {
      self.service = service
      self.accessGroup = accessGroup
    }

    /// Reads the token of a context; nil if there is none.
    public func token(for context: TokenContext) throws -> AccessToken? {
      var query = query(context)
      query[kSecReturnData] = true
      query[kSecMatchLimit] = kSecMatchLimitOne
      var result: CFTypeRef?
      let status = SecItemCopyMatching(query as CFDictionary, &result)
      if status == errSecItemNotFound { return nil }
      guard status == errSecSuccess else { throw Self.failure(status, "read") }
      guard let data = result as? Data, data.count <= AccessToken.byteLimit else {
        throw StorageError(.invalidStore, "the keychain holds something for \(context) that is no token; sign in again")
      }
      return try AccessToken.stored([UInt8](data), in: "the keychain")
    }

    /// Keeps a token, in place of the one that the context had.
    public func save(_ token: AccessToken, for context: TokenContext) throws {
      let value = Data(token.document.bytes())
      let change = [kSecValueData: value] as CFDictionary
      var status = SecItemUpdate(query(context) as CFDictionary, change)
      if status == errSecItemNotFound {
        var item = query(context)
        item[kSecValueData] = value
        // A round in the background has to read it, but no backup takes it to another device.
        item[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
        status = SecItemAdd(item as CFDictionary, nil)
        // Somebody was faster.
        if status == errSecDuplicateItem { status = SecItemUpdate(query(context) as CFDictionary, change) }
      }
      guard status == errSecSuccess else { throw Self.failure(status, "written") }
    }

    /// Removes the token of a context, if it is there.
    public func remove(_ context: TokenContext) throws {
      let status = SecItemDelete(query(context) as CFDictionary)
      guard status == errSecSuccess || status == errSecItemNotFound else { throw Self.failure(status, "changed") }
    }

    private func query(_ context: TokenContext) -> [CFString: Any] {
      var query: [CFString: Any] = [
        kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecAttrAccount: context.rawValue,
      ]
      if let accessGroup { query[kSecAttrAccessGroup] = accessGroup }
      return query
    }

    private static func failure(_ status: OSStatus, _ action: String) -> StorageError {
      let reason = SecCopyErrorMessageString(status, nil).map { $0 as String } ?? "error \(status)"
      return StorageError(.storeUnavailable, "the keychain cannot be \(action): \(reason)")
    }
  }
#endif
