import Foundation
import TestSupport
import Testing

/// A volume in memory that is small enough for a test to fill, and that can be made read-only.
///
/// Permissions do not bind the superuser, and only the superuser can mount: a volume is the way to test both failures.
final class SmallVolume {
  let path: String
  private let bench: Workbench
  private var isMounted = false

  /// The reason why this machine cannot have such a volume.
  static let requirement: Comment = "it takes Linux, the superuser, and the right to mount a tmpfs"

  /// True if this process may mount volumes.
  static let isAvailable: Bool = {
    #if os(Linux)
      guard geteuid() == 0 else { return false }
      do {
        let bench = try Workbench()
        try SmallVolume("trial", of: 1 << 20, on: bench).unmount()
        return true
      } catch {
        return false
      }
    #else
      return false
    #endif
  }()

  /// Mounts a volume in the folder of a workbench.
  init(_ name: String, of bytes: Int, on bench: Workbench) throws {
    path = bench.path(name)
    self.bench = bench
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try Self.run("mount", ["-t", "tmpfs", "-o", "size=\(bytes)", "buckia-test", path])
    isMounted = true
  }

  deinit { unmount() }

  /// Unmounts the volume and deletes its contents. Tests call this at their end, because an object that is no longer
  /// used may be released earlier.
  func unmount() {
    guard isMounted else { return }
    isMounted = false
    do { try Self.run("umount", ["-l", path]) } catch { print("left mounted: \(path): \(error)") }
  }

  /// Makes the volume read-only, or writable again.
  func remount(readOnly: Bool) throws {
    try Self.run("mount", ["-o", "remount,\(readOnly ? "ro" : "rw")", path])
  }

  /// Fills the volume, except for some bytes.
  func fill(leaving bytes: Int) throws {
    let filling = "\(path)/filling"
    try Data().write(to: URL(fileURLWithPath: filling))
    let status = try FileManager.default.attributesOfFileSystem(forPath: path)
    let free = try #require(status[.systemFreeSize] as? NSNumber).intValue
    try Data(count: max(0, free - bytes)).write(to: URL(fileURLWithPath: filling))
  }

  /// Frees the filled space again.
  func makeRoom() throws { try FileManager.default.removeItem(atPath: "\(path)/filling") }

  private struct Failed: Error { let command: String }

  private static func run(_ tool: String, _ arguments: [String]) throws {
    let run = try ProgramRun("/usr/bin/env", [tool] + arguments)
    guard run.hasSucceeded else { throw Failed(command: "\(tool) \(arguments): \(run.errors)") }
  }
}
