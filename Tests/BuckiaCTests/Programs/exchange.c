/* Two people with copies of a database: one sends what has changed, the other applies it and looks back. */

#include <buckia.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Unlike assert, this is also there in optimised builds. */
#define EXPECT(condition) \
  ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

/* Ends the program when a call has failed. C may evaluate arguments in any order, so the error is looked up in here. */
static void check(buckia_status status, buckia_error **error) {
  if (status == BUCKIA_OK) return;
  fprintf(stderr, "%s (%s)\n", buckia_error_message(*error), buckia_error_code(*error));
  buckia_error_free(*error);
  exit(1);
}

/* Writes what has changed since a copy of the database was made. */
static char *send_changes(const char *now, const char *before, const char *outbox) {
  buckia_database *database = NULL;
  buckia_error *error = NULL;
  char *report = NULL;
  check(buckia_open(now, &database, &error), &error);
  check(buckia_diff(database, before, outbox, NULL, &report, &error), &error);
  buckia_close(database);
  return report;
}

/* Makes the keys of a person whose files are in a folder of their own. */
static char *join(const char *home, const char *arguments) {
  buckia_file_options options = { .size = sizeof options, .home = home };
  buckia_error *error = NULL;
  char *report = NULL;
  check(buckia_call(NULL, "identity new", arguments, &options, &report, &error), &error);
  return report;
}

static const buckia_value *value_of(const buckia_value *row, const buckia_conflict *conflict, const char *column) {
  for (size_t i = 0; row && i < conflict->column_count; i++)
    if (strcmp(conflict->columns[i], column) == 0) return &row[i];
  return NULL;
}

/* Keeps both titles where two people have changed one. */
static buckia_answer keep_both(void *context, const buckia_conflict *conflict, buckia_row *row) {
  int *asked = context;
  ++*asked;
  const buckia_value *here = value_of(conflict->local, conflict, "title");
  const buckia_value *there = value_of(conflict->incoming, conflict, "title");
  if (!here || !there || here->type != BUCKIA_TEXT || there->type != BUCKIA_TEXT) return BUCKIA_ANSWER_DEFAULT;
  char title[200];
  int length = snprintf(title, sizeof title, "%.*s / %.*s", (int)here->length, (const char *)here->bytes,
                        (int)there->length, (const char *)there->bytes);
  if (length < 0 || (size_t)length >= sizeof title) return BUCKIA_ANSWER_LOCAL;
  buckia_value both = { .type = BUCKIA_TEXT, .bytes = title, .length = (size_t)length };
  return buckia_row_set(row, "title", &both) == BUCKIA_OK ? BUCKIA_ANSWER_ROW : BUCKIA_ANSWER_FAIL;
}

/* Applies what has arrived on a connection that is open already. */
static buckia_counts receive_changes(sqlite3 *connection, const char *inbound, buckia_conflict_callback resolve,
                                     void *context) {
  buckia_database *database = NULL;
  buckia_error *error = NULL;
  buckia_counts counts = { .size = sizeof counts };
  buckia_apply_options options = { .size = sizeof options, .resolve = resolve, .resolve_context = context };
  check(buckia_open_handle(connection, NULL, &database, &error), &error);
  check(buckia_apply(database, &inbound, 1, &options, &counts, NULL, &error), &error);
  buckia_close(database);
  return counts;
}

/* Prints the changes in a file. */
static int print_changes(const char *path) {
  buckia_changes *changes = NULL;
  const buckia_change *change = NULL;
  buckia_error *error = NULL;
  buckia_status status;
  int count = 0;
  check(buckia_changes_open(path, NULL, &changes, &error), &error);
  while ((status = buckia_changes_next(changes, &change, &error)) == BUCKIA_ROW) {
    printf("%s %s:", change->operation == BUCKIA_INSERT ? "+" : change->operation == BUCKIA_DELETE ? "-" : "~",
           change->table);
    for (size_t i = 0; i < change->column_count; i++) {
      const buckia_value *value = &(change->new_values ? change->new_values : change->old_values)[i];
      if (value->type == BUCKIA_TEXT)
        printf(" %s=%.*s", change->columns[i], (int)value->length, (const char *)value->bytes);
      if (value->type == BUCKIA_INTEGER) printf(" %s=%lld", change->columns[i], (long long)value->integer);
    }
    printf("\n");
    count++;
  }
  check(status == BUCKIA_DONE ? BUCKIA_OK : status, &error);
  buckia_changes_close(changes);
  return count;
}

static sqlite3 *open_database(const char *path) {
  sqlite3 *connection = NULL;
  EXPECT(sqlite3_open(path, &connection) == SQLITE_OK);
  return connection;
}

static void run(sqlite3 *connection, const char *sql) {
  if (sqlite3_exec(connection, sql, NULL, NULL, NULL) == SQLITE_OK) return;
  fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(connection));
  exit(1);
}

static void expect_title(sqlite3 *connection, int id, const char *title) {
  sqlite3_stmt *statement = NULL;
  EXPECT(sqlite3_prepare_v2(connection, "SELECT title FROM notes WHERE id = ?1", -1, &statement, NULL) == SQLITE_OK);
  sqlite3_bind_int(statement, 1, id);
  if (title) {
    EXPECT(sqlite3_step(statement) == SQLITE_ROW);
    EXPECT(strcmp((const char *)sqlite3_column_text(statement, 0), title) == 0);
  } else {
    EXPECT(sqlite3_step(statement) == SQLITE_DONE);
  }
  sqlite3_finalize(statement);
}

/* The path of the only file that a report names. It belongs to the caller. */
static char *path_in(const char *report) {
  const char *start = strstr(report, "\"path\":\"");
  EXPECT(start);
  start += strlen("\"path\":\"");
  char *path = strdup(start);
  *strchr(path, '"') = 0;
  return path;
}

static int add_length(void *context, const char *json) {
  *(size_t *)context += strlen(json);
  return 0;
}

static void look_back(const char *path) {
  buckia_database *database = NULL;
  buckia_error *error = NULL;
  char *json = NULL;
  check(buckia_open(path, &database, &error), &error);

  /* What met a change of one's own, and what became of it. */
  buckia_conflict_filter filter = { .size = sizeof filter, .table = "notes", .kind = BUCKIA_CONFLICT_DATA };
  check(buckia_conflicts(database, &filter, -1, &json, &error), &error);
  EXPECT(strstr(json, "\"outcome\":\"resolved\"") && strstr(json, "\"outcome\":\"kept-local\"") == NULL);
  buckia_free(json);
  size_t length = 0;
  check(buckia_each_conflict(database, NULL, -1, add_length, &length, &error), &error);
  EXPECT(length > 0);

  /* Somebody decides otherwise. */
  int64_t first = 1;
  buckia_resolve_options by_ben = { .size = sizeof by_ben, .decided_by = "Ben" };
  check(buckia_resolve(database, &first, 1, BUCKIA_RESOLVE_INCOMING, &by_ben, &json, &error), &error);
  EXPECT(strstr(json, "\"resolved\":true") && strstr(json, "Anna's oak"));
  buckia_free(json);
  buckia_cell title = { .column = "title", .value = { .type = BUCKIA_TEXT, .bytes = "Oak", .length = 3 } };
  buckia_resolve_options own = { .size = sizeof own, .values = &title, .value_count = 1 };
  check(buckia_resolve_all(database, &filter, BUCKIA_RESOLVE_VALUES, &own, &json, &error), &error);
  EXPECT(strstr(json, "\"title\":\"Oak\""));
  buckia_free(json);

  /* What has arrived, and taking it back. */
  check(buckia_log(database, -1, &json, &error), &error);
  EXPECT(strstr(json, "\"state\":\"applied\""));
  const char *start = strstr(json, "\"id\":\"");
  EXPECT(start);
  char id[BUCKIA_KSUID_TEXT_LENGTH + 1] = { 0 };
  memcpy(id, start + strlen("\"id\":\""), BUCKIA_KSUID_TEXT_LENGTH);
  buckia_free(json);
  const char *ids[] = { id };
  check(buckia_undo(database, ids, 1, NULL, &json, &error), &error);
  EXPECT(strstr(json, "\"undone\":[{"));
  buckia_free(json);
  buckia_close(database);
}

/* Shares some rows, in a file that everybody can read. */
static void share(const char *path) {
  const char *scope = "{\"format\":1,\"tables\":[{\"table\":\"notes\",\"where\":\"id < 3\"}]}";
  const char *recipients[] = { "ben" };
  buckia_database *database = NULL;
  buckia_error *error = NULL;
  char *json = NULL;
  buckia_share_options options = { .size = sizeof options, .unencrypted = true, .dry_run = true };
  check(buckia_open(path, &database, &error), &error);
  check(buckia_share(database, scope, recipients, 1, NULL, &options, &json, &error), &error);
  EXPECT(strstr(json, "\"dryRun\":true") && strstr(json, "\"inserted\":2"));
  buckia_free(json);
  options.dry_run = false;
  check(buckia_share(database, scope, recipients, 1, "shared", &options, &json, &error), &error);
  char *file = path_in(json);
  EXPECT(access(file, R_OK) == 0);
  free(file);
  buckia_free(json);
  /* Nothing has changed, and the scope is known. */
  check(buckia_share(database, NULL, recipients, 1, "shared", &options, &json, &error), &error);
  EXPECT(strstr(json, "\"id\":null"));
  buckia_free(json);
  /* Without a key for Ben nothing is encrypted. */
  options.unencrypted = false;
  EXPECT(buckia_share(database, NULL, recipients, 1, "shared", &options, &json, &error) == BUCKIA_ERROR);
  EXPECT(json == NULL && buckia_error_status(error) == BUCKIA_ERROR && strlen(buckia_error_message(error)) > 0);
  buckia_error_free(error);
  buckia_close(database);
}

int main(int count, char **arguments) {
  EXPECT(count == 2 && chdir(arguments[1]) == 0);
  EXPECT(buckia_abi_version() == BUCKIA_ABI_VERSION);
  buckia_error *error = NULL;

  sqlite3 *anna = open_database("anna.db");
  run(anna, "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, rating REAL, picture BLOB);"
            "INSERT INTO notes VALUES (1, 'Oak', 1.5, x'00ff'), (2, 'Elm', NULL, NULL), (3, 'Ash', 3, x'');"
            "VACUUM INTO 'before.db'; VACUUM INTO 'ben.db'");
  run(anna, "UPDATE notes SET title = 'Anna''s oak' WHERE id = 1; DELETE FROM notes WHERE id = 2;"
            "INSERT INTO notes VALUES (4, 'Yew', 4.5, zeroblob(1000))");

  char *report = send_changes("anna.db", "before.db", "outbox");
  char *file = path_in(report);
  EXPECT(strstr(report, "\"version\":1") == report + 1);
  EXPECT(print_changes(file) == 3);
  buckia_free(report);
  report = send_changes("anna.db", "anna.db", "outbox");
  EXPECT(strstr(report, "\"path\":null"));
  buckia_free(report);

  /* The file is in order, and can be turned round. */
  bool is_good = false;
  const char *files[] = { file };
  check(buckia_verify(files, 1, NULL, &is_good, NULL, &error), &error);
  EXPECT(is_good);
  check(buckia_invert(file, "undo.changeset", NULL, NULL, &error), &error);
  EXPECT(print_changes("undo.changeset") == 3);
  buckia_ksuid id;
  const char *name = strrchr(file, '/') + 1;
  char text[BUCKIA_KSUID_TEXT_LENGTH + 1] = { 0 };
  memcpy(text, name, BUCKIA_KSUID_TEXT_LENGTH);
  check(buckia_ksuid_parse(text, &id, &error), &error);
  EXPECT(strcmp(id.text, text) == 0 && id.unix_seconds > 1400000000);
  buckia_ksuid later;
  check(buckia_ksuid_new(NULL, &later, &error), &error);
  EXPECT(memcmp(later.bytes, id.bytes, sizeof id.bytes) > 0 && strcmp(later.text, id.text) > 0);

  /* Ben has changed the same title. Inside a transaction of his that he takes back, nothing happens. */
  sqlite3 *ben = open_database("ben.db");
  run(ben, "UPDATE notes SET title = 'Ben''s oak' WHERE id = 1");
  int asked = 0;
  run(ben, "BEGIN");
  buckia_counts counts = receive_changes(ben, "outbox", keep_both, &asked);
  EXPECT(counts.applied == 1 && asked == 1);
  expect_title(ben, 1, "Ben's oak / Anna's oak");
  run(ben, "ROLLBACK");
  expect_title(ben, 1, "Ben's oak");
  expect_title(ben, 4, NULL);
  EXPECT(access(file, R_OK) == 0);

  counts = receive_changes(ben, "outbox", keep_both, &asked);
  EXPECT(counts.applied == 1 && counts.inserted == 1 && counts.deleted == 1 && counts.conflicts == 1 && asked == 2);
  expect_title(ben, 1, "Ben's oak / Anna's oak");
  expect_title(ben, 2, NULL);
  expect_title(ben, 4, "Yew");
  /* What was applied for good is gone from the folder. */
  EXPECT(access(file, R_OK) != 0);
  EXPECT(receive_changes(ben, "outbox", NULL, NULL).applied == 0);

  /* What has no function of its own is called by its name. */
  report = join("home", "{\"name\": \"Anna\"}");
  EXPECT(strstr(report, "\"name\":\"Anna\""));
  buckia_free(report);
  buckia_file_options home = { .size = sizeof home, .home = "home" };
  report = NULL;
  EXPECT(buckia_call(NULL, "contact list", "{\"typo\": 1}", &home, &report, &error) == BUCKIA_MISUSE && !report);
  EXPECT(strstr(buckia_error_message(error), "typo"));
  buckia_error_free(error);
  error = NULL;
  EXPECT(buckia_call(NULL, "status", NULL, &home, &report, &error) == BUCKIA_MISUSE);
  buckia_error_free(error);
  error = NULL;
  buckia_database *database = NULL;
  check(buckia_open("ben.db", &database, &error), &error);
  check(buckia_call(database, "snapshot", "{\"path\": \"sent.db\"}", NULL, NULL, &error), &error);
  check(buckia_call(database, "status", "{}", NULL, &report, &error), &error);
  EXPECT(strstr(report, "\"shares\":[]"));
  buckia_free(report);
  buckia_close(database);
  EXPECT(access("sent.db", R_OK) == 0);

  /* Another thread can stop an undo. Nothing is changed then. */
  buckia_cancellation *stop = buckia_cancellation_new();
  buckia_cancel(stop);
  buckia_undo_options undo = { .size = sizeof undo, .cancellation = stop };
  const char *unsigned_files[] = { "unsigned" };
  undo.senders = unsigned_files;
  undo.sender_count = 1;
  check(buckia_open("ben.db", &database, &error), &error);
  EXPECT(buckia_undo(database, NULL, 0, &undo, NULL, &error) == BUCKIA_CANCELLED);
  buckia_error_free(error);
  error = NULL;
  buckia_close(database);
  buckia_cancellation_free(stop);
  expect_title(ben, 2, NULL);

  look_back("ben.db");
  expect_title(ben, 2, "Elm");
  expect_title(ben, 4, NULL);
  share("ben.db");

  free(file);
  sqlite3_close(ben);
  sqlite3_close(anna);
  puts("done");
  return 0;
}
