import Foundation
import TestSupport
import Testing

/// A volume of its own in memory, so small that a test can fill it, and one that can be made read-only.
///
/// Permissions do not bind the superuser, and only the superuser can mount: this is the way to see both failures.
final class SmallVolume {
  let path: String
  private let bench: Workbench
  private var isMounted = false

  /// Why there can be no such volume here.
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

  /// Takes the volume away with all that is on it. Tests say so at their end: what is not referred to any more may be gone
  /// before.
  func unmount() {
    guard isMounted else { return }
    isMounted = false
    do { try Self.run("umount", ["-l", path]) } catch { print("left mounted: \(path): \(error)") }
  }

  /// Makes the volume read-only, or writable again.
  func remount(readOnly: Bool) throws {
    try Self.run("mount", ["-o", "remount,\(readOnly ? "ro" : "rw")", path])
  }

  /// Fills the volume up, but for some bytes.
  func fill(leaving bytes: Int) throws {
    let filling = "\(path)/filling"
    try Data().write(to: URL(fileURLWithPath: filling))
    let status = try FileManager.default.attributesOfFileSystem(forPath: path)
    let free = try #require(status[.systemFreeSize] as? NSNumber).intValue
    try Data(count: max(0, free - bytes)).write(to: URL(fileURLWithPath: filling))
  }

  /// Takes the filling out again.
  func makeRoom() throws { try FileManager.default.removeItem(atPath: "\(path)/filling") }

  private struct Failed: Error { let command: String }

  private static func run(_ tool: String, _ arguments: [String]) throws {
    let run = try ProgramRun("/usr/bin/env", [tool] + arguments)
    guard run.hasSucceeded else { throw Failed(command: "\(tool) \(arguments): \(run.errors)") }
  }
}
