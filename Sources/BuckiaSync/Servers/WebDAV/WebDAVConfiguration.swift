import BuckiaStorage

/// Which folder of a WebDAV server, and who asks.
public struct WebDAVConfiguration: Sendable, Equatable {
  /// The address of the folder, such as `https://cloud.example/remote.php/dav/files/anna/Buckia`.
  public var address: String
  /// The user's name and password, or app password; nil for nobody in particular.
  public var credentials: WebDAVCredentials?
  /// How many requests may be under way at once.
  public var transferLimit = 4
  /// Whether the server honours `If-None-Match: *` when something is put: rclone does not. ``StorageProbe`` finds out.
  public var honoursConditions = true
  /// How many files and folders a listing has at most.
  var listingLimit = StorageListing.limit

  /// Describes a folder.
  public init(address: String, credentials: WebDAVCredentials? = nil) {
    self.address = address
    self.credentials = credentials
  }
}

/// Who asks a WebDAV server: sent at once, without waiting to be asked (RFC 7617).
public struct WebDAVCredentials: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// The user's name.
  public let user: String
  /// The password, or better one that belongs to this app alone.
  public let password: String

  /// Takes a name and a password.
  public init(user: String, password: String) {
    self.user = user
    self.password = password
  }

  /// The name alone: passwords are not printed.
  public var description: String { "WebDAV user \(user)" }
  /// What `dump` shows: nothing secret.
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}
