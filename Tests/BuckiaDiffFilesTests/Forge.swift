import BuckiaKSUID
import CBuckiaZstd
import SQLiteChangesets

@testable import BuckiaDiffFiles

/// Makes files that the writer would not make: archives of any members, packed by zstd without a seal.
struct Forge {
  /// A member as it is put into the archive, right or wrong.
  struct Member {
    var name: String
    var bytes: [UInt8]
    var header: [UInt8]
    var padding: [UInt8]

    init(_ name: String, _ bytes: [UInt8]) {
      self.name = name
      self.bytes = bytes
      header = TarHeader.bytes(name: name, size: Int64(bytes.count))
      padding = [UInt8](repeating: 0, count: TarHeader.padding(after: Int64(bytes.count)))
    }
  }

  /// The manifest, changed at will before it is written.
  var manifest = Manifest(id: Sample.id, tables: Sample.tables)
  var schema: [UInt8]?
  var changeset = Sample.changeset
  var annotations: [UInt8]?
  var files: [(name: String, bytes: [UInt8])] = []
  var end = [UInt8](repeating: 0, count: TarHeader.endBytes)

  init() throws { schema = try SchemaDocument.bytes(Sample.schema) }

  /// The members that the manifest is to speak of.
  var contents: [Member] {
    (schema.map { [Member("schema.json", $0)] } ?? []) + [Member("changeset", changeset)]
      + (annotations.map { [Member("annotations", $0)] } ?? [])
      + files.map { Member("files/\($0.name)", $0.bytes) }
  }

  /// The manifest with everything it has to say of the members.
  var completeManifest: Manifest {
    var manifest = manifest
    manifest.schema = schema.map { RunningDigest.of($0) }
    manifest.members = contents.map {
      Manifest.Member(name: $0.name, size: Int64($0.bytes.count), sha256: RunningDigest.of($0.bytes))
    }
    return manifest
  }

  var archive: [Member] { [Member("manifest.json", completeManifest.json.bytes())] + contents }

  /// The unpacked archive.
  func tar(_ members: [Member]) -> [UInt8] {
    members.flatMap { $0.header + $0.bytes + $0.padding } + end
  }

  /// The whole file, members changed by `change`.
  func file(_ change: (inout [Member]) throws -> Void = { _ in }) throws -> [UInt8] {
    var members = archive
    try change(&members)
    return try Forge.pack(tar(members))
  }

  /// The whole file, the manifest's text changed by `change`.
  func file(manifestText change: (String) -> String) throws -> [UInt8] {
    try file { members in
      members[0] = Member("manifest.json", Array(change(String(decoding: members[0].bytes, as: UTF8.self)).utf8))
    }
  }

  static func pack(_ bytes: [UInt8], checksum: Bool = true, windowLog: Int32 = 0) throws -> [UInt8] {
    let context = ZSTD_createCCtx()
    defer { ZSTD_freeCCtx(context) }
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0)
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0)
    if windowLog > 0 { ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, windowLog) }
    var output = [UInt8](repeating: 0, count: ZSTD_compressBound(bytes.count) + 64)
    var target = ZSTD_outBuffer()
    let isDone = output.withUnsafeMutableBytes { out in
      bytes.withUnsafeBytes { input in
        target = ZSTD_outBuffer(dst: out.baseAddress, size: out.count, pos: 0)
        // Two steps, so that the size is not known in advance and the window is the one asked for.
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        _ = ZSTD_compressStream2(context, &target, &source, ZSTD_e_continue)
        return ZSTD_compressStream2(context, &target, &source, ZSTD_e_end) == 0
      }
    }
    guard isDone else { throw Sample.SampleError() }
    return Array(output[..<target.pos])
  }
}

/// The error that opening a file ends in, or nil when it is accepted.
func refusal(
  at path: String, name: DiffFile.NameRule = .ifNamedByID, limits: DiffFileLimits = DiffFileLimits(),
  spoolFolder: String = ChangesetSpool.temporaryFolder
) -> DiffFileError? {
  do throws(DiffFileError) {
    _ = try DiffFile.verified(at: path, name: name, limits: limits, spoolFolder: spoolFolder)
    return nil
  } catch {
    return error
  }
}
