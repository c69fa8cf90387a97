#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension DatabaseManager {
  /// Creates a manager for a database file, which need not exist before a call needs it.
  public init(_ url: URL, home: BuckiaHome = .standard) { self.init(url.path, home: home) }

  /// Applies diff files, raw changesets and whole inbound folders: as with paths.
  @discardableResult
  public func processInboundChanges(
    _ urls: [URL], options: ApplyOptions = ApplyOptions(), resolver: ConflictResolver? = nil,
    progress: ApplyProgressHandler? = nil
  ) throws -> ApplyReport {
    try processInboundChanges(urls.map(\.path), options: options, resolver: resolver, progress: progress)
  }

  /// Applies diff files, raw changesets and whole inbound folders: as with paths.
  @discardableResult
  public func processInboundChanges(
    _ urls: [URL], options: ApplyOptions = ApplyOptions(), resolver: ConflictResolver? = nil,
    progress: @escaping @Sendable (ApplyProgress) throws -> Void = { _ in }
  ) async throws -> ApplyReport {
    try await processInboundChanges(urls.map(\.path), options: options, resolver: resolver, progress: progress)
  }
}
