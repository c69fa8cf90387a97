// A program that uses SQLite and knows nothing of Swift: it loads an extension into a connection, runs the lines of its
// standard input as SQL, and prints the rows and errors.
//
//   ExtensionHost SQLITE EXTENSION DATABASE
//
// SQLITE is the shared library to use, so that the same program is a host of any version of SQLite.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

#define FUNCTIONS(F)                                                                                                   \
  F(const char *, libversion, void)                                                                                    \
  F(int, open, const char *, sqlite3 **)                                                                               \
  F(int, close, sqlite3 *)                                                                                             \
  F(int, enable_load_extension, sqlite3 *, int)                                                                        \
  F(int, load_extension, sqlite3 *, const char *, const char *, char **)                                               \
  F(int, prepare_v2, sqlite3 *, const char *, int, sqlite3_stmt **, const char **)                                     \
  F(int, step, sqlite3_stmt *)                                                                                         \
  F(int, finalize, sqlite3_stmt *)                                                                                     \
  F(int, column_count, sqlite3_stmt *)                                                                                 \
  F(int, column_type, sqlite3_stmt *, int)                                                                             \
  F(const unsigned char *, column_text, sqlite3_stmt *, int)                                                           \
  F(const void *, column_blob, sqlite3_stmt *, int)                                                                    \
  F(int, column_bytes, sqlite3_stmt *, int)                                                                            \
  F(const char *, errmsg, sqlite3 *)

#define F(result, name, ...) static result (*name)(__VA_ARGS__);
FUNCTIONS(F)
#undef F

enum { ROW = 100, DONE = 101, BLOB = 4, NULL_VALUE = 5 };

static void fail(const char *what, const char *reason) {
  printf("%s: %s\n", what, reason ? reason : "no reason");
  exit(1);
}

static void *find(void *library, const char *name) {
  void *address = dlsym(library, name);
  if (!address) fail(name, "not in this library");
  return address;
}

static void print_value(sqlite3_stmt *statement, int column) {
  switch (column_type(statement, column)) {
    case NULL_VALUE: printf("NULL"); break;
    case BLOB: {
      const unsigned char *bytes = column_blob(statement, column);
      int count = column_bytes(statement, column);
      printf("x'");
      for (int i = 0; i < count; i++) printf("%02x", bytes[i]);
      printf("'");
      break;
    }
    default: printf("%s", column_text(statement, column));
  }
}

static void run(sqlite3 *db, const char *sql) {
  while (*sql) {
    sqlite3_stmt *statement = NULL;
    int code = prepare_v2(db, sql, -1, &statement, &sql);
    if (code == 0 && !statement) return;
    if (code == 0) {
      while ((code = step(statement)) == ROW) {
        for (int column = 0; column < column_count(statement); column++) {
          if (column > 0) printf("|");
          print_value(statement, column);
        }
        printf("\n");
      }
    }
    if (code != DONE) printf("error %d: %s\n", code & 0xff, errmsg(db));
    finalize(statement);
    if (code != DONE) return;
  }
}

int main(int count, char **arguments) {
  if (count != 4) fail("usage", "ExtensionHost SQLITE EXTENSION DATABASE");
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(arguments[1], dlerror());
#define F(result, name, ...) name = (result (*)(__VA_ARGS__))find(library, "sqlite3_" #name);
  FUNCTIONS(F)
#undef F
  sqlite3 *db = NULL;
  if (open(arguments[3], &db) != 0) fail(arguments[3], db ? errmsg(db) : NULL);
  char *message = NULL;
  enable_load_extension(db, 1);
  if (load_extension(db, arguments[2], "sqlite3_buckia_init", &message) != 0) fail("load", message);
  char *line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, stdin) > 0) run(db, line);
  free(line);
  // A statement or function that is still open would keep the connection from closing.
  if (close(db) != 0) fail("close", errmsg(db));
  return 0;
}
