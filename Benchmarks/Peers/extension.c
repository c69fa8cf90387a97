/* Calls the loadable extension with the system's SQLite; see peer.h.
 *
 *   extension EXTENSION diff ...
 *   extension EXTENSION apply ...
 *
 * Loading the library into the process is not timed. To apply, each call opens a connection, makes the functions known
 * to it and closes it again. The difference comes as a blob, which the program brings to the disk itself.
 *
 *   cc extension.c -lsqlite3 */

#include "peer.h"

#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <unistd.h>

static const char *extension;
/* What the difference is asked on: it has nothing to do with the two databases. */
static sqlite3 *memory;

static void check(int code, int wanted, sqlite3 *connection) {
  if (code != wanted) fail("SQLite", sqlite3_errmsg(connection));
}

static sqlite3 *open_connection(const char *path) {
  sqlite3 *connection = NULL;
  char *message = NULL;
  check(sqlite3_open(path, &connection), SQLITE_OK, connection);
  check(sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL), SQLITE_OK, connection);
  if (sqlite3_load_extension(connection, extension, NULL, &message) != SQLITE_OK) fail(extension, message);
  return connection;
}

/* Runs a query with text as its parameters as far as its only row. */
static sqlite3_stmt *ask(sqlite3 *connection, const char *sql, int count, const char *const *values) {
  sqlite3_stmt *statement = NULL;
  check(sqlite3_prepare_v2(connection, sql, -1, &statement, NULL), SQLITE_OK, connection);
  for (int index = 0; index < count; index++)
    check(sqlite3_bind_text(statement, index + 1, values[index], -1, SQLITE_STATIC), SQLITE_OK, connection);
  check(sqlite3_step(statement), SQLITE_ROW, connection);
  return statement;
}

/* Writes a file as Buckia does: under another name at first, and on the disk before it gets its own. */
static void publish(const char *path, const char *bytes, size_t count) {
  char name[4096], folder[4096];
  if (snprintf(name, sizeof name, "%s.part", path) >= (int)sizeof name) fail(path, "the path is too long");
  snprintf(folder, sizeof folder, "%s", path);
  int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) fail(name, "it cannot be made");
  while (count > 0) {
    ssize_t written = write(file, bytes, count);
    if (written <= 0) fail(name, "it cannot be written");
    bytes += written;
    count -= (size_t)written;
  }
  if (fsync(file) != 0 || close(file) != 0 || rename(name, path) != 0) fail(path, "it cannot be written");
  int parent = open(dirname(folder), O_RDONLY | O_CLOEXEC);
  if (parent < 0 || fsync(parent) != 0 || close(parent) != 0) fail(path, "its folder cannot be written");
}

static void diff(const char *older, const char *newer, const char *home, const char *output) {
  const char *values[] = { older, newer, home };
  sqlite3_stmt *statement =
    ask(memory, "SELECT buckia_diff(?, ?, json_object('raw', json('false'), 'home', ?))", 3, values);
  publish(output, sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0));
  sqlite3_finalize(statement);
}

static void apply(const char *file, const char *home, const char *database) {
  const char *values[] = { file, home };
  sqlite3 *connection = open_connection(database);
  sqlite3_stmt *statement =
    ask(connection, "SELECT json_extract(buckia_apply(?, json_object('home', ?)), '$.diffs[0].state')", 2, values);
  const char *state = (const char *)sqlite3_column_text(statement, 0);
  if (!state || strcmp(state, "applied") != 0) fail(database, "the file was not applied");
  sqlite3_finalize(statement);
  check(sqlite3_close(connection), SQLITE_OK, connection);
}

int main(int count, char **arguments) {
  if (count < 2) fail("usage", "extension EXTENSION diff ... or extension EXTENSION apply ...");
  extension = arguments[1];
  memory = open_connection(":memory:");
  make_calls(count - 2, arguments + 2, diff, apply);
  return 0;
}
