import Buckia
import BuckiaStorage

extension BuckiaClient {
  private func marks() async throws -> DeviceMarks {
    try await DeviceMarks(of: index.device(in: nil), in: RemotePath(configuration.userID), storages[0], index)
  }

  /// Takes part as one of the person's devices. Restoring a backup begins with this, so that files which arrive meanwhile are kept for the device.
  func takePart() async throws {
    if configuration.hasSeveralDevices { try await marks().takePart(at: WallClock.unixMilliseconds) }
  }

  /// Lets another device of the person be forgotten, which is gone for good: diffs do not wait for it any more.
  ///
  /// - Parameter device: Its id, as a round names it.
  /// - Throws: `StorageError`: `notFound` when there is no such device.
  public func forgetDevice(_ device: String) async throws { try await marks().retire(device, whereKnown: true) }
}
