/* Prints documents, each on a line, which the command prints, too. */

#include <buckia.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPECT(condition) \
  ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

static void run(const char *path, const char *sql) {
  sqlite3 *connection = NULL;
  EXPECT(sqlite3_open(path, &connection) == SQLITE_OK);
  EXPECT(sqlite3_exec(connection, sql, NULL, NULL, NULL) == SQLITE_OK);
  sqlite3_close(connection);
}

static void print(buckia_status status, char **json) {
  EXPECT(status == BUCKIA_OK);
  puts(*json);
  buckia_free(*json);
  *json = NULL;
}

int main(int count, char **arguments) {
  EXPECT(count == 2);
  /* The command names files as they are named to it. */
  char path[4096], outbox[4096];
  EXPECT(snprintf(path, sizeof path, "%s/other.db", arguments[1]) < (int)sizeof path);
  EXPECT(snprintf(outbox, sizeof outbox, "%s/outbox", arguments[1]) < (int)sizeof outbox);
  EXPECT(chdir(arguments[1]) == 0);
  run("now.db", "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c REAL); INSERT INTO t VALUES (1, 'one', 1), (2, x'00', 0.5);"
                "VACUUM INTO 'before.db'; VACUUM INTO 'other.db'; UPDATE t SET b = 9007199254740993, c = 9e999");
  run("other.db", "UPDATE t SET b = 'two'");
  buckia_database *database = NULL;
  char *json = NULL;
  EXPECT(buckia_open("now.db", &database, NULL) == BUCKIA_OK);
  EXPECT(buckia_diff(database, "before.db", "outbox", NULL, NULL, NULL) == BUCKIA_OK);
  buckia_close(database);
  EXPECT(buckia_open(path, &database, NULL) == BUCKIA_OK);
  const char *paths[] = { outbox };
  buckia_apply_options keep = { .size = sizeof keep, .keep = true };
  EXPECT(buckia_apply(database, paths, 1, &keep, NULL, NULL, NULL) == BUCKIA_OK);

  print(buckia_log(database, -1, &json, NULL), &json);
  print(buckia_conflicts(database, NULL, -1, &json, NULL), &json);
  buckia_conflict_filter filter = { .size = sizeof filter, .table = "t" };
  print(buckia_conflicts(database, &filter, 1, &json, NULL), &json);
  print(buckia_rules(database, &json, NULL), &json);
  print(buckia_verify(paths, 1, NULL, NULL, &json, NULL), &json);
  const char *unsigned_ones[] = { "unsigned" };
  buckia_undo_options undo = { .size = sizeof undo, .dry_run = true, .senders = unsigned_ones, .sender_count = 1 };
  print(buckia_undo(database, NULL, 0, &undo, &json, NULL), &json);
  int64_t first = 1;
  buckia_resolve_options resolve = { .size = sizeof resolve, .dry_run = true };
  print(buckia_resolve(database, &first, 1, BUCKIA_RESOLVE_INCOMING, &resolve, &json, NULL), &json);
  print(buckia_init(database, BUCKIA_TRUST_AS_IS, &json, NULL), &json);
  buckia_close(database);
  return 0;
}
