import TestSupport
import Testing

/// Schemas of all kinds, small enough for edits to conflict.
enum SchemaZoo {
  /// A schema, named by its special feature.
  struct Schema: CustomTestStringConvertible, Sendable {
    let name: String
    let sql: String

    var testDescription: String { name }
  }

  /// The additions of an update to a schema: a column in each table, and a new table.
  static func upgrade(of schema: Schema) -> [String] {
    let tables = schema.sql.split(separator: "CREATE TABLE ").dropFirst().map { String($0.prefix { $0 != "(" }) }
    return tables.map { "ALTER TABLE \($0) ADD COLUMN remark TEXT" }
      + ["CREATE TABLE drafts(id TEXT PRIMARY KEY, body TEXT, size REAL)"]
  }

  /// The seeds of a schema: all seeds are divided among the schemas.
  static func seeds(_ usual: Int, of schema: Schema) -> LazyFilterSequence<Range<UInt64>> {
    let place = all.firstIndex { $0.name == schema.name } ?? 0
    return Seeds.range(usual).lazy.filter { $0 % UInt64(all.count) == place }
  }

  static let all = [
    Schema(
      name: "text keys",
      sql: """
        CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, stars REAL, edited INTEGER);
        INSERT INTO notes VALUES ('k1', 'Boat', 0.5, 1), ('k2', 'Radio', NULL, 2);
        """),
    Schema(
      name: "integer keys",
      sql: """
        CREATE TABLE places(id INTEGER PRIMARY KEY, name TEXT NOT NULL, latitude REAL, longitude REAL);
        INSERT INTO places VALUES (1, 'Kiel', 54.3, 10.1), (2, 'Bremen', 53.1, 8.8);
        """),
    Schema(
      name: "counted keys",
      sql: "CREATE TABLE entries(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT, data BLOB)"),
    Schema(
      name: "composite keys",
      sql: """
        CREATE TABLE cells(sheet TEXT NOT NULL, row INTEGER NOT NULL, value, format TEXT DEFAULT 'plain',
          PRIMARY KEY (sheet, row));
        INSERT INTO cells(sheet, row, value) VALUES ('k1', 1, 1.5), ('k1', 2, x'00'), ('k2', 1, NULL);
        """),
    Schema(
      name: "WITHOUT ROWID",
      sql: """
        CREATE TABLE words(word TEXT PRIMARY KEY, count INTEGER NOT NULL, note TEXT) WITHOUT ROWID;
        INSERT INTO words VALUES ('k1', 1, ''), ('k2', 2, NULL);
        """),
    Schema(
      name: "parents and children",
      sql: """
        CREATE TABLE albums(id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE photos(id TEXT PRIMARY KEY, album TEXT REFERENCES albums(id) ON DELETE CASCADE ON UPDATE CASCADE, place TEXT);
        CREATE TABLE tags(photo TEXT NOT NULL REFERENCES photos(id) ON DELETE CASCADE, tag TEXT NOT NULL,
          PRIMARY KEY (photo, tag)) WITHOUT ROWID;
        INSERT INTO albums VALUES ('k1', 'Sea'), ('k2', 'Land');
        INSERT INTO photos VALUES ('k1', 'k1', NULL), ('k2', 'k1', 'Kiel');
        """),
    Schema(
      name: "children with integer keys",
      sql: """
        CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE calls(id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES people, seconds REAL);
        INSERT INTO people VALUES (1, 'Anna'), (2, 'Ben');
        INSERT INTO calls VALUES (1, 1, 60.5);
        """),
    Schema(
      name: "a tree",
      sql: """
        CREATE TABLE folders(id TEXT PRIMARY KEY, parent TEXT REFERENCES folders(id) ON DELETE SET NULL, name TEXT);
        INSERT INTO folders VALUES ('k1', NULL, 'root'), ('k2', 'k1', 'leaf');
        """),
    Schema(
      name: "UNIQUE",
      sql: """
        CREATE TABLE users(id TEXT PRIMARY KEY, login TEXT UNIQUE, place INTEGER, shelf INTEGER, UNIQUE (place, shelf));
        INSERT INTO users VALUES ('k1', 'u1', 1, 1), ('k2', 'u2', 1, 2);
        """),
    Schema(
      name: "NULLs, floats and blobs",
      sql: """
        CREATE TABLE samples(id INTEGER PRIMARY KEY, x REAL, y FLOAT, anything, raw BLOB, amount NUMERIC);
        INSERT INTO samples VALUES (1, 0.1, -0.0, NULL, x'', 12), (2, 1e300, NULL, 'text', NULL, 0.25);
        """),
    Schema(
      name: "NOCASE keys",
      sql: """
        CREATE TABLE labels(label TEXT PRIMARY KEY COLLATE NOCASE, colour TEXT COLLATE NOCASE);
        INSERT INTO labels VALUES ('k1', 'red'), ('K2', 'Blue');
        """),
    Schema(
      name: "CHECKs and generated columns",
      sql: """
        CREATE TABLE tasks(id TEXT PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('open', 'done')),
          hours REAL CHECK (hours >= 0), days REAL AS (hours / 24), short TEXT AS (substr(state, 1, 1)) STORED);
        INSERT INTO tasks(id, state, hours) VALUES ('k1', 'open', 1), ('k2', 'done', 2.5);
        """),
    Schema(
      name: "STRICT",
      sql: """
        CREATE TABLE strict(id INTEGER PRIMARY KEY, name TEXT NOT NULL, size REAL, data BLOB, free ANY) STRICT;
        INSERT INTO strict VALUES (1, 'a', 1.5, x'01', 7);
        """),
    Schema(
      name: "no keys",
      sql: """
        CREATE TABLE lines(text TEXT, number INTEGER);
        INSERT INTO lines VALUES ('one', 1), ('two', 2);
        """),
    Schema(
      name: "triggers",
      sql: """
        CREATE TABLE accounts(id TEXT PRIMARY KEY, balance INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE journal(id TEXT PRIMARY KEY, account TEXT, balance INTEGER);
        CREATE TRIGGER noted AFTER UPDATE OF balance ON accounts BEGIN
          INSERT INTO journal VALUES (new.id || '-' || new.balance, new.id, new.balance)
            ON CONFLICT (id) DO NOTHING;
        END;
        INSERT INTO accounts VALUES ('k1', 10), ('k2', 20);
        """),
    Schema(
      name: "a survey",
      sql: """
        CREATE TABLE sites(id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, area REAL CHECK (area >= 0),
          outline BLOB);
        CREATE TABLE visits(site INTEGER NOT NULL REFERENCES sites(id) ON DELETE CASCADE ON UPDATE CASCADE,
          day INTEGER NOT NULL, observer TEXT, weather TEXT DEFAULT 'dry', PRIMARY KEY (site, day));
        CREATE TABLE findings(site INTEGER NOT NULL, day INTEGER NOT NULL, species TEXT NOT NULL,
          number INTEGER CHECK (number > 0), weight REAL, photo BLOB, PRIMARY KEY (site, day, species),
          FOREIGN KEY (site, day) REFERENCES visits(site, day) ON DELETE CASCADE ON UPDATE CASCADE) WITHOUT ROWID;
        INSERT INTO sites VALUES (1, 'u1', 2.5, x'0102'), (2, 'u2', NULL, NULL);
        INSERT INTO visits(site, day, observer) VALUES (1, 1, 'Anna'), (1, 2, NULL);
        INSERT INTO findings VALUES (1, 1, 'k1', 3, 0.75, NULL);
        """),
    Schema(
      name: "map layers",
      sql: """
        CREATE TABLE layers(name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL CHECK (kind IN ('points', 'lines')),
          title TEXT UNIQUE, west REAL, south REAL);
        CREATE TABLE features(id INTEGER PRIMARY KEY AUTOINCREMENT, layer TEXT NOT NULL REFERENCES layers(name)
          ON DELETE CASCADE ON UPDATE CASCADE, shape BLOB, height REAL, label TEXT);
        CREATE TABLE attachments(feature INTEGER NOT NULL REFERENCES features(id) ON DELETE CASCADE,
          place INTEGER NOT NULL, kind TEXT, data BLOB, PRIMARY KEY (feature, place));
        INSERT INTO layers VALUES ('k1', 'points', 'u1', 10.0, 54.25), ('k2', 'lines', NULL, NULL, NULL);
        INSERT INTO features(layer, shape, height) VALUES ('k1', x'475001', 1.5), ('k1', NULL, NULL);
        INSERT INTO attachments VALUES (1, 1, 'image', x'ff');
        """),
  ]
}
