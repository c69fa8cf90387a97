import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What the several devices of one person tell each other through their storage: who takes part, and which diffs each has applied. A diff goes
/// from the inbound folder when all have it.
///
/// ```
/// <user-id>/devices/<replica>/device          takes part; written anew once a day
/// <user-id>/devices/<replica>/<file>.done     has applied the file of that name
/// ```
struct DeviceMarks {
  /// For how long a device that is not heard of is waited for, in milliseconds: 90 days. After that it has to restore a backup, or be shared with anew.
  static let patience: Int64 = 90 * 86_400_000
  private static let day: Int64 = 86_400_000

  private let storage: any StorageProvider
  private let folder: RemotePath
  private let device: String
  private let index: SyncIndex
  private let now: Int64

  /// - Parameters:
  ///   - device: This device: its replica.
  ///   - user: The person's folder.
  ///   - now: The present time, in milliseconds since 1970.
  init(
    of device: String, in user: RemotePath, _ storage: any StorageProvider, _ index: SyncIndex, now: Int64
  ) throws(StorageError) {
    self.storage = storage
    self.device = device
    self.index = index
    self.now = now
    folder = try user.appending("devices")
  }

  /// Takes part, which the others see.
  func takePart() async throws {
    let name = "device \(storage.name)"
    if let last = try await index.setting(name).flatMap({ Int64($0) }), now - last < Self.day, now >= last { return }
    try await storage.put(StorageContents([]), to: folder.appending("\(device)/device"), .none)
    try await index.set(name, to: "\(now)")
  }

  /// Says that this device has applied files, and finds those that all devices have applied.
  ///
  /// - Parameter names: The names of the files.
  /// - Returns: Those that nobody needs any more, each with its marks, which go when the file has gone.
  func settle(_ names: [String]) async throws -> [String: [RemotePath]] {
    guard !names.isEmpty else { return [:] }
    var listing = try await Marks(storage.listAll(folder))
    for name in names where !listing.has(device, done: name) {
      try await storage.put(StorageContents([]), to: folder.appending("\(device)/\(name).done"), .none)
    }
    // Looked at behind the own marks: of two devices that do this at the same time, one at least sees the marks of both.
    listing = try await Marks(storage.listAll(folder))
    let others = listing.devices.filter { $0.key != device && ($0.value ?? now) > now - Self.patience }.keys
    let free = names.filter { name in others.allSatisfy { listing.has($0, done: name) } }
    let marks = try free.map { name in
      try (name, listing.owners(of: name).map { try folder.appending("\($0)/\(name).done") })
    }
    return Dictionary(marks) { first, _ in first }
  }

  /// What the folder holds.
  private struct Marks {
    /// The devices, and when each was last heard of, in milliseconds since 1970.
    private(set) var devices: [String: Int64?] = [:]
    private var done: Set<String> = []

    init(_ listing: StorageListing) {
      for object in listing.objects {
        guard let device = object.path.folder?.name else { continue }
        if object.path.name == "device" {
          devices[device] = .some(object.modifiedAt)
        } else {
          done.insert("\(device)/\(object.path.name)")
        }
      }
    }

    func has(_ device: String, done name: String) -> Bool { done.contains("\(device)/\(name).done") }

    /// The devices that have marked a file.
    func owners(of name: String) -> [String] { devices.keys.filter { has($0, done: name) } }
  }
}
