import BuckiaStorage

/// The marks by which the devices of one person coordinate through their storage: the registered devices, and the diffs
/// that each has applied. A diff is removed from the inbound folder when all devices have it.
///
/// ```
/// <user-id>/devices/<device>/device          takes part; written again once a day
/// <user-id>/devices/<device>/<file>.done     has applied the file of that name
/// <user-id>/devices/<device>/gone            is gone for good, as a person has said
/// ```
struct DeviceMarks {
  /// After how long a device that is not heard of is named, in milliseconds of the storage's time: 90 days.
  static let patience: Int64 = 90 * 86_400_000
  private static let day: Int64 = 86_400_000

  private let storage: any StorageProvider
  private let folder: RemotePath
  private let device: String
  private let index: SyncIndex

  /// - Parameters:
  ///   - device: This device: see ``SyncIndex/device(in:)``.
  ///   - user: The person's folder.
  init(
    of device: String, in user: RemotePath, _ storage: any StorageProvider, _ index: SyncIndex
  ) throws(StorageError) {
    self.storage = storage
    self.device = device
    self.index = index
    folder = try user.appending("devices")
  }

  private func object(_ name: String) throws -> RemotePath { try folder.appending("\(device)/\(name)") }

  /// Registers this device, which the others see. Nothing is downloaded before.
  ///
  /// - Parameters:
  ///   - now: The present time, in milliseconds since 1970.
  ///   - names: The names of the inbound files.
  ///   - settled: The files that the database has. The marks of others are from an earlier incarnation of the database,
  ///     and are removed.
  func takePart(at now: Int64, inbound names: [String] = [], settled: Set<String> = []) async throws {
    let setting = "took part \(device) \(storage.name)"
    let last = try await index.setting(setting).flatMap { Int64($0) } ?? 0
    let marks = names.isEmpty ? nil : try await Marks(storage.listAll(folder))
    // The storage may have been emptied.
    let isThere =
      if let marks { marks.devices[device] != nil } else { try await storage.exists(object("device")) }
    if !isThere || now - last >= Self.day || now < last {
      try await storage.put(StorageContents([]), to: object("device"), .none)
      if marks?.gone.contains(device) ?? true { try await storage.delete(object("gone")) }
      try await index.set(setting, to: "\(now)")
    }
    if let former = try await index.setting("former device") {
      try await retire(former)
      try await index.set("former device", to: nil)
    }
    guard let marks else { return }
    _ = try await others(marks)
    for name in names where marks.has(device, done: name) && !settled.contains(name) {
      try await storage.delete(object("\(name).done"))
    }
  }

  /// Marks another device as removed.
  ///
  /// - Parameter isKnown: True to throw for an unknown device.
  /// - Throws: `StorageError`: `notFound` where nothing is.
  func retire(_ other: String, whereKnown isKnown: Bool = false) async throws {
    let folder = try folder.appending(other)
    let objects = try await storage.listAll(folder).objects
    if isKnown, objects.isEmpty, try await !known().contains(other) {
      throw StorageError(.notFound, "there is no such device", path: folder)
    }
    try await storage.put(StorageContents([]), to: folder.appending("gone"), .none)
    for object in objects where object.path.name != "gone" { try await storage.delete(object.path) }
  }

  /// The other devices that were seen, in whichever storage: a fallback has the same ones.
  private static let setting = "devices"

  private func known() async throws -> Set<String> {
    Set(try await index.setting(Self.setting)?.split(separator: " ").map(String.init) ?? [])
  }

  /// The devices to wait for: those in the storage, and those that were there before it was emptied, until a person
  /// removes them.
  private func others(_ marks: Marks) async throws -> [String] {
    let known = try await known()
    let others = known.union(marks.devices.keys).subtracting(marks.gone).subtracting([device])
    if others != known { try await index.set(Self.setting, to: others.sorted().joined(separator: " ")) }
    return others.sorted()
  }

  /// Files that all devices have applied, each with its marks, which are deleted after the file; and devices that files wait for.
  struct Settlement {
    var free: [String: [RemotePath]] = [:]
    /// The age of each device's last mark, in days before the newest mark; nil if the storage has none of it.
    var silent: [(device: String, days: Int64?)] = []
  }

  /// Marks files as applied by this device, and finds those that all devices have applied.
  ///
  /// The silence of a device is measured by the storage's times alone, and only reported: a person decides to remove
  /// it.
  ///
  /// - Parameter names: The names of the files.
  func settle(_ names: [String]) async throws -> Settlement {
    guard !names.isEmpty else { return Settlement() }
    var marks = try await Marks(storage.listAll(folder))
    for name in names where !marks.has(device, done: name) {
      try await storage.put(StorageContents([]), to: object("\(name).done"), .none)
    }
    // Read after writing the own marks: of two devices that do this at the same time, at least one sees the marks of
    // both.
    marks = try await Marks(storage.listAll(folder))
    let others = try await others(marks)
    var settlement = Settlement()
    for name in names where others.allSatisfy({ marks.has($0, done: name) }) {
      settlement.free[name] = try marks.owners(of: name).map { try folder.appending("\($0)/\(name).done") }
    }
    let newest = marks.devices.values.compactMap { $0 }.max() ?? 0
    for other in others where names.contains(where: { !marks.has(other, done: $0) }) {
      let heard = marks.devices[other] ?? nil
      if let heard, newest - heard <= Self.patience { continue }
      settlement.silent.append((other, heard.map { (newest - $0) / Self.day }))
    }
    return settlement
  }

  /// The marks in the folder.
  private struct Marks {
    /// The devices, and when each was last heard of, in milliseconds since 1970.
    private(set) var devices: [String: Int64?] = [:]
    /// The removed devices.
    private(set) var gone: Set<String> = []
    private var done: Set<String> = []

    init(_ listing: ListPage) {
      for object in listing.objects {
        guard let device = object.path.folder?.name else { continue }
        if object.path.name == "device" {
          devices[device] = .some(object.modifiedAt)
        } else if object.path.name == "gone" {
          gone.insert(device)
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
