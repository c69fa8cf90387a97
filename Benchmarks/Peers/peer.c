/* Calls the C library; see peer.h. A call takes a database by its path, so it opens the file and closes it again.
 *
 *   cc peer.c $(PKG_CONFIG_PATH=.build/library pkg-config --cflags --libs buckia) */

#include "peer.h"

#include <buckia.h>

static void check(buckia_status status, buckia_error **error) {
  if (status != BUCKIA_OK) fail(buckia_error_code(*error), buckia_error_message(*error));
}

static buckia_database *open_database(const char *path, const char *home) {
  buckia_database *database = NULL;
  buckia_error *error = NULL;
  check(buckia_open(path, &database, &error), &error);
  check(buckia_set_home(database, home, NULL, &error), &error);
  return database;
}

static void diff(const char *older, const char *newer, const char *home, const char *output) {
  buckia_error *error = NULL;
  char *report = NULL;
  buckia_database *database = open_database(newer, home);
  check(buckia_diff(database, older, output, NULL, &report, &error), &error);
  buckia_free(report);
  buckia_close(database);
}

static void apply(const char *file, const char *home, const char *path) {
  buckia_error *error = NULL;
  buckia_counts counts = { .size = sizeof counts };
  buckia_database *database = open_database(path, home);
  check(buckia_apply(database, &file, 1, NULL, &counts, NULL, &error), &error);
  if (counts.applied != 1) fail(path, "the file was not applied");
  buckia_close(database);
}

int main(int count, char **arguments) {
  make_calls(count - 1, arguments + 1, diff, apply);
  return 0;
}
