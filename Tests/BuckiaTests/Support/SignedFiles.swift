import BuckiaFormat

/// Signs a file that was made unsigned, as one of several people.
func sign(fileAt path: String, by person: UInt8) throws {
  let diff = try DiffFile.verified(at: path)
  var manifest = diff.manifest
  manifest.sender = Manifest.Sender()
  var writer = DiffFileWriter()
  writer.replacesExisting = true
  writer.signer = try signer(person)
  try writer.write(
    DiffFileDraft(manifest: manifest, schema: .included(diff.schema ?? [])), changeset: diff.changeset, to: path)
}

/// The signer for one of several people.
func signer(_ person: UInt8) throws -> ManifestSigner {
  try ManifestSigner(seed: [UInt8](repeating: person, count: 32))
}
