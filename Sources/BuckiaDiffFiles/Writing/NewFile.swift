#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A file in the making: it appears under its name complete and safely on disk, or not at all.
///
/// The bytes go into a file with a temporary name in the same folder; ``publish(replacing:)`` syncs it, gives it its
/// name and syncs the folder. Dropped before that, it leaves nothing behind. A crash can leave a file called
/// `.buckia-….tmp`, which no inbound folder reads.
final class NewFile {
  /// The file as it will be called.
  let path: String
  /// How many bytes have been written.
  private(set) var count: Int64 = 0

  private let folder: String
  private let temporaryPath: String
  private var descriptor: Int32
  private var isPublished = false

  /// Makes the temporary file.
  ///
  /// - Throws: `DiffFileError` with code `alreadyExists` when something has the name and `replacing` is not set, or one
  ///   of the system's.
  init(at path: String, replacing: Bool) throws(DiffFileError) {
    var status = stat()
    if !replacing, lstat(path, &status) == 0 { throw Self.alreadyExists(path) }
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    var attempts = 0
    var file: Int32 = -1
    var candidate = ""
    repeat {
      candidate = "\(folder)/.buckia-\(String(UInt64.random(in: 0...UInt64.max), radix: 36)).tmp"
      // Not mkstemp: the finished file is to have the permissions that the person's umask gives to new files.
      file = open(candidate, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
      attempts += 1
    } while file < 0 && errno == EEXIST && attempts < 100
    guard file >= 0 else {
      throw .system("it cannot be written", errno: errno, path: path, otherwise: .unwritable)
    }
    self.path = path
    self.folder = folder
    temporaryPath = candidate
    descriptor = file
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if !isPublished { unlink(temporaryPath) }
  }

  /// Adds bytes at the end.
  func write(_ bytes: UnsafeRawBufferPointer) throws(DiffFileError) {
    var rest = bytes
    while !rest.isEmpty {
      #if canImport(Glibc)
        let written = Glibc.write(descriptor, rest.baseAddress, rest.count)
      #elseif canImport(Musl)
        let written = Musl.write(descriptor, rest.baseAddress, rest.count)
      #else
        let written = Darwin.write(descriptor, rest.baseAddress, rest.count)
      #endif
      if written < 0 {
        let number = errno
        if number == EINTR { continue }
        throw failure(number)
      }
      count += Int64(written)
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
  }

  /// Gives the file its name, when all of it is on disk.
  ///
  /// - Throws: `DiffFileError` with code `alreadyExists` when something took the name meanwhile and `replacing` is not
  ///   set, or one of the system's; nothing is then left behind.
  func publish(replacing: Bool) throws(DiffFileError) {
    guard Self.sync(descriptor) == 0 else { throw failure(errno) }
    // A network file system may report only here that it could not store everything.
    let closed = close(descriptor)
    let number = errno
    descriptor = -1
    guard closed == 0 else { throw failure(number) }
    try moveIntoPlace(replacing: replacing)
    let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return try abandon(errno, replacing) }
    let synced = fsync(directory)
    let syncError = errno
    close(directory)
    // Some file systems cannot sync a folder and say so; the name is then as safe as it gets.
    if synced != 0, syncError != EINVAL, syncError != ENOTSUP { try abandon(syncError, replacing) }
  }

  private func moveIntoPlace(replacing: Bool) throws(DiffFileError) {
    if replacing {
      guard rename(temporaryPath, path) == 0 else { throw failure(errno) }
      isPublished = true
      return
    }
    // A second name for the file is made only if the name is free, in one step; rename would replace.
    if link(temporaryPath, path) == 0 {
      unlink(temporaryPath)
      isPublished = true
      return
    }
    let number = errno
    guard [EPERM, EOPNOTSUPP, ENOTSUP, ENOSYS, EMLINK].contains(number) else { throw failure(number) }
    // No hard links here (FAT, some network file systems): take the name with an empty file, then replace that.
    let reserved = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
    guard reserved >= 0 else { throw failure(errno) }
    close(reserved)
    guard rename(temporaryPath, path) == 0 else {
      let number = errno
      unlink(path)
      throw failure(number)
    }
    isPublished = true
  }

  /// Takes a new file away again whose name could not be made safe.
  private func abandon(_ number: Int32, _ replacing: Bool) throws(DiffFileError) {
    if !replacing { unlink(path) }
    throw failure(number)
  }

  private func failure(_ number: Int32) -> DiffFileError {
    if number == EEXIST { return Self.alreadyExists(path) }
    return .system("it cannot be written", errno: number, path: path, otherwise: .unwritable)
  }

  private static func alreadyExists(_ path: String) -> DiffFileError {
    DiffFileError(.alreadyExists, "a file of that name is there already", path: path)
  }

  private static func sync(_ descriptor: Int32) -> Int32 {
    #if canImport(Darwin)
      // On Apple systems fsync leaves the bytes in the drive's cache.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return 0 }
    #endif
    return fsync(descriptor)
  }
}
