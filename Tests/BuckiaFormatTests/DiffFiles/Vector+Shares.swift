import BuckiaBytes

@testable import BuckiaFormat

// The fields of shares: streams, acknowledgements, recipients, sums, keys, origins, withdrawals.

extension Sample {
  private static func bucket(_ bucket: UInt8, _ beginning: [UInt8]) -> [Manifest.State.Bucket] {
    [Manifest.State.Bucket(bucket, beginning: beginning)].compactMap { $0 }
  }

  /// A share with two people, which follows another one and replaces none.
  static let share = Manifest(
    id: id, sender: Manifest.Sender(replica: .repeating(0x22), incarnation: .repeating(0x33)),
    audience: .recipients(
      salt: .repeating(0x44),
      hashes: [9, 8].map { Audience.hash(of: [UInt8](repeating: $0, count: 32), salt: .repeating(0x44)) }),
    chain: Manifest.Chain(
      stream: .repeating(0x55), sequence: 7,
      follows: Manifest.Chain.Predecessor(id: earlier, manifestSHA256: .repeating(0x66))),
    acknowledgements: [
      Manifest.Acknowledgement(stream: .repeating(0x77), incarnation: .repeating(0x88), through: 12),
      Manifest.Acknowledgement(stream: .repeating(0x78), incarnation: .repeating(0x88), through: 0),
    ],
    ownKeys: ["notes"],
    states: [
      Manifest.State(
        table: "notes", rows: 3, digest: .repeating(0xab),
        buckets: bucket(0x01, [2, 3]) + bucket(0xfe, [0, 0xff])),
      Manifest.State(table: log.name, rows: 1, digest: .repeating(0xcd)),
    ])

  /// The same as a broadcast snapshot.
  static let broadcast = Manifest(
    id: id, kind: .snapshot, sender: share.sender, audience: .broadcast(.repeating(0x55)),
    chain: Manifest.Chain(stream: .repeating(0x56), sequence: 1, replaces: .repeating(0x55)), ownKeys: ["notes"],
    states: share.states)

  /// Resent rows and a request.
  static let mending = Manifest(
    id: id, critical: ["resent"], sender: share.sender, audience: share.audience, chain: share.chain,
    acknowledgements: share.acknowledgements, ownKeys: ["notes"], states: share.states,
    resent: [Manifest.Rows(table: "notes", buckets: [0x01, 0xfe]), Manifest.Rows(table: log.name, buckets: nil)],
    requests: [
      Manifest.Rows(of: .repeating(0x77), table: "notes", buckets: [0x00, 0xff]),
      Manifest.Rows(of: .repeating(0x77), table: "topics", buckets: nil),
    ])

  /// A share without changes, only with requests and acknowledgements.
  static let question = Manifest(
    id: id, kind: .ack, sender: share.sender, audience: share.audience, chain: share.chain,
    acknowledgements: share.acknowledgements, requests: mending.requests)

  /// Changes of two origins, including a withdrawal, and the rows' keys at other replicas.
  static let sharedOrigins = Annotations(
    origins: [id, earlier],
    runs: [
      .init(count: 1, origin: 0, kind: .withdraw),
      .init(count: 1, origin: 1),
      .init(count: 3, origin: 0, columns: [.init(column: 1, origin: 1)]),
    ],
    keys: RowKeys(
      replicas: [.repeating(0x22), .repeating(0x23)],
      runs: [
        .init(count: 2), .init(count: 2, names: [.init(replica: 0), .init(replica: 1, keys: [7, .max])]),
        .init(count: 1),
      ],
      references: [.init(table: "topics", key: 12, replica: 1, name: -3)],
      links: [.init(table: "notes", columns: ["body"], parent: "topics", parentColumns: ["name"])]))
}

extension Vector {
  /// Valid shares.
  static let acceptedShares = [
    Vector(
      "a share", nil,
      FileSpec(
        manifest: Sample.share, tables: [.notes(withdrawn: 1), .log()], annotations: Sample.sharedOrigins,
        isSigned: true)),
    Vector("a share with all that there is", nil, FileSpec(manifest: Sample.broadcast)),
    Vector("a share with rows sent anew", nil, FileSpec(manifest: Sample.mending)),
    Vector(
      "a share that only asks", nil, FileSpec(manifest: Sample.question, tables: [], schema: nil, changes: [])),
  ]

  /// The share, or another one, with another text in its manifest.
  private static func share(
    _ find: String, _ put: String, of manifest: Manifest = Sample.share
  ) -> FileSpec {
    FileSpec(manifest: manifest, corruptions: [.replace(find, by: put, in: "manifest.json")])
  }

  /// The share with another text in its annotations.
  private static func origins(_ find: String, _ put: String) -> FileSpec {
    FileSpec(
      manifest: Sample.share, tables: [.notes(withdrawn: 1), .log()], annotations: Sample.sharedOrigins,
      corruptions: [.replace(find, by: put, in: "annotations")])
  }

  private static let stream55 = "\"stream\":\"\(String(repeating: "55", count: 16))\""

  /// Shares that must be refused. `Vectors/refused` contains them, too, each with its expected error in the name.
  static let refusedShares = [
    Vector("a stream of fifteen bytes", .badManifest, share(stream55, stream55.replacing("5555\"", with: "55\""))),
    Vector("number zero of a stream", .badManifest, share("\"sequence\":7", "\"sequence\":0")),
    Vector("the first of a stream that follows another", .badManifest, share("\"sequence\":7", "\"sequence\":1")),
    Vector(
      "a later one that follows nothing", .badManifest,
      FileSpec(manifest: Manifest(id: Sample.id, chain: .init(stream: .repeating(0x55), sequence: 7)))),
    Vector(
      "a predecessor that is later", .badManifest,
      FileSpec(
        manifest: Manifest(
          id: Sample.id,
          chain: .init(
            stream: .repeating(0x55), sequence: 7, follows: .init(id: Sample.later, manifestSHA256: .repeating(1)))))),
    Vector("a predecessor that says more", .badManifest, share("\"follows\":{", "\"follows\":{\"sequence\":6,")),
    Vector(
      "a delta in the place of another stream", .badManifest,
      share("\"kind\":\"snapshot\"", "\"kind\":\"delta\"", of: Sample.broadcast)),
    Vector("an acknowledgement below zero", .badManifest, share("\"through\":12", "\"through\":-1")),
    Vector(
      "an exception of an unknown kind", .badManifest,
      FileSpec(
        manifest: Manifest(
          id: Sample.id,
          acknowledgements: [
            .init(
              stream: .repeating(7), incarnation: .repeating(8), through: 2,
              except: [.init(id: Sample.earlier, state: .held)])
          ]), corruptions: [.replace("\"held\"", by: "\"lost\"", in: "manifest.json")])),
    Vector("an audience of nobody", .badManifest, share("\"recipients\":[", "\"recipients\":[],\"were\":[")),
    Vector(
      "a recipient twice", .badManifest,
      FileSpec(
        manifest: Manifest(
          id: Sample.id, audience: .recipients(salt: .repeating(4), hashes: [.repeating(1), .repeating(1)])))),
    Vector(
      "an audience that says more", .badManifest,
      share("\"audience\":{", "\"audience\":{\"names\":[],", of: Sample.broadcast)),
    Vector(
      "sums of a diff without a stream", .badManifest,
      FileSpec(manifest: Manifest(id: Sample.id, states: Sample.share.states))),
    Vector(
      "sums of a table twice", .badManifest,
      FileSpec(
        manifest: Manifest(
          id: Sample.id, chain: Sample.share.chain, states: [Sample.share.states[0], Sample.share.states[0]]))),
    Vector("a bucket before the last one", .badManifest, share("010203fe00ff", "fe00ff010203")),
    Vector("half a bucket", .badManifest, share("010203fe00ff", "010203fe")),
    Vector("fewer rows than none", .badManifest, share("\"rows\":3", "\"rows\":-3")),
    Vector("own keys of a table twice", .badManifest, share("\"ownKeys\":[", "\"ownKeys\":[\"NOTES\",")),
    Vector(
      "rows sent anew that need not be understood", .badManifest,
      share("\"critical\":[\"resent\"]", "\"critical\":[]", of: Sample.mending)),
    Vector(
      "a snapshot with rows sent anew", .badManifest,
      share("\"kind\":\"delta\"", "\"kind\":\"snapshot\"", of: Sample.mending)),
    Vector(
      "rows that are asked of nobody", .badManifest, share("\"stream\":\"7777", "\"storm\":\"7777", of: Sample.question)
    ),
    Vector("a bucket asked for twice", .badManifest, share("\"00ff\"", "\"0000\"", of: Sample.question)),
    Vector("an origin that is later", .badAnnotations, origins("\"\(Sample.earlier)\"", "\"\(Sample.later)\"")),
    Vector("an origin twice", .badAnnotations, origins("\"\(Sample.earlier)\"", "\"\(Sample.id)\"")),
    Vector(
      "an origin that is not listed", .badAnnotations, origins("\"count\":1,\"origin\":1", "\"count\":1,\"origin\":2")),
    Vector(
      "a withdrawal that is no deletion", .badAnnotations,
      origins("\"origin\":1}", "\"origin\":1,\"kind\":\"withdraw\"}")),
    Vector(
      "a withdrawal that the manifest does not count", .contradiction,
      FileSpec(manifest: Sample.share, annotations: Sample.sharedOrigins)),
    Vector("origins of too few changes", .contradiction, origins("\"count\":3", "\"count\":2")),
    Vector("an unknown kind of change", .badAnnotations, origins("\"kind\":\"withdraw\"", "\"kind\":\"hide\"")),
    Vector(
      "a replica that is not listed", .badAnnotations, origins("\"replica\":1,\"keys\"", "\"replica\":2,\"keys\"")),
    Vector("a key too few", .badAnnotations, origins("\"keys\":[7,", "\"keys\":[")),
    Vector("a small key as text", .badAnnotations, origins("\"keys\":[7,", "\"keys\":[\"7\",")),
    Vector("keys of too few changes", .contradiction, origins("{\"count\":2},", "{\"count\":1},")),
  ]
}
