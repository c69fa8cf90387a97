/* Wrong arguments, and callbacks that fail or want to stop: each is told, and none ends the program. */

#include <buckia.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECT(condition) \
  ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

/* True if a call has a status, and an error that says so. `error` is a variable of the caller. */
#define EXPECT_STATUS(expected, call)                          \
  do {                                                         \
    error = NULL;                                              \
    buckia_status status = (call);                             \
    if (status != (expected)) {                                \
      fprintf(stderr, "%s:%d: %s: %d, %s\n", __FILE__, __LINE__, #call, status, buckia_error_message(error)); \
      exit(1);                                                 \
    }                                                          \
    if (status != BUCKIA_OK) {                                 \
      EXPECT(error && buckia_error_status(error) == status);   \
      EXPECT(strlen(buckia_error_code(error)) > 0 && strlen(buckia_error_message(error)) > 0); \
      EXPECT(!strstr(buckia_error_message(error), "--")); /* An option of the command helps no program. */ \
      EXPECT(strncmp(buckia_error_json(error), "{\"version\":1,\"error\":{", 22) == 0); \
    }                                                          \
    buckia_error_free(error);                                  \
    error = NULL;                                              \
  } while (0)

static buckia_error *error;

static void run(const char *path, const char *sql) {
  sqlite3 *connection = NULL;
  EXPECT(sqlite3_open(path, &connection) == SQLITE_OK);
  EXPECT(sqlite3_exec(connection, sql, NULL, NULL, NULL) == SQLITE_OK);
  sqlite3_close(connection);
}

static void expect_nulls_are_refused(void) {
  buckia_database *database = (buckia_database *)1;
  buckia_changes *changes = (buckia_changes *)1;
  const buckia_change *change = (const buckia_change *)1;
  char *json = (char *)1;
  const char *nulls[] = { NULL };
  buckia_ksuid id;
  size_t read = 1;
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_open(NULL, &database, &error));
  EXPECT(database == NULL);
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_open("a.db", NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_open("\xff.db", &database, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_open_handle(NULL, NULL, &database, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_open_handle_finding(NULL, NULL, NULL, &database, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_set_home(NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_set_busy_timeout(NULL, 1, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_init(NULL, BUCKIA_TRUST_ANY, &json, &error));
  EXPECT(json == NULL);
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_diff(NULL, NULL, NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_share(NULL, NULL, NULL, 0, NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_apply(NULL, NULL, 0, NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_conflicts(NULL, NULL, -1, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_each_conflict(NULL, NULL, -1, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_resolve(NULL, NULL, 0, BUCKIA_RESOLVE_LOCAL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_resolve_all(NULL, NULL, BUCKIA_RESOLVE_LOCAL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_rules(NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_forget_rule(NULL, 1, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_log(NULL, -1, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_each_log_entry(NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_undo(NULL, NULL, 0, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_verify(NULL, 1, NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_verify(nulls, 1, NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_verify(nulls, SIZE_MAX, NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_invert(NULL, NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_concat(NULL, 0, NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_changes_open(NULL, NULL, &changes, &error));
  EXPECT(changes == NULL);
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_changes_open("a.bdiff", NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_changes_open_bytes(NULL, 3, NULL, &changes, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_changes_next(NULL, &change, &error));
  EXPECT(change == NULL);
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_changes_read(NULL, NULL, 0, NULL, 0, &read, &error));
  EXPECT(read == 0 && buckia_changes_manifest(NULL) == NULL);
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_ksuid_new(NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_ksuid_parse(NULL, &id, &error));
  EXPECT_STATUS(BUCKIA_ERROR, buckia_ksuid_parse("short", &id, &error));
  EXPECT(buckia_row_set(NULL, NULL, NULL) == BUCKIA_MISUSE);
  /* The error need not be asked for. */
  EXPECT(buckia_open(NULL, &database, NULL) == BUCKIA_MISUSE);
  /* NULL can be freed and asked. */
  buckia_free(NULL);
  buckia_error_free(NULL);
  buckia_close(NULL);
  buckia_changes_close(NULL);
  buckia_cancellation_free(NULL);
  buckia_cancel(NULL);
  EXPECT(!buckia_is_cancelled(NULL) && buckia_error_status(NULL) == BUCKIA_OK && buckia_error_json(NULL) == NULL);
  EXPECT(strcmp(buckia_error_code(NULL), "") == 0 && strcmp(buckia_error_message(NULL), "") == 0);
  EXPECT(buckia_error_path(NULL) == NULL);
}

static void expect_options_are_checked(buckia_database *database) {
  const char *paths[] = { "outbox" };
  buckia_apply_options options = { .size = 0 };
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_apply(database, paths, 1, &options, NULL, NULL, &error));
  options.size = sizeof options;
  options.on_conflict = (buckia_policy)77;
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_apply(database, paths, 1, &options, NULL, NULL, &error));
  options.on_conflict = BUCKIA_KEEP_LOCAL;
  options.keep = options.remove = true;
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_apply(database, paths, 1, &options, NULL, NULL, &error));
  buckia_counts counts = { .size = 0 };
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_apply(database, paths, 1, NULL, &counts, NULL, &error));
  /* A program of a later version: fine as long as it wants nothing new. */
  struct { buckia_diff_options known; int64_t later; } newer = { { .size = sizeof newer }, 0 };
  EXPECT_STATUS(BUCKIA_OK, buckia_diff(database, "before.db", "later", &newer.known, NULL, &error));
  newer.later = 1;
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_diff(database, "before.db", "later", &newer.known, NULL, &error));
  /* And one of an earlier version. */
  buckia_diff_options older = { .size = offsetof(buckia_diff_options, method) };
  older.method = (buckia_method)77;
  EXPECT_STATUS(BUCKIA_OK, buckia_diff(database, "before.db", "later", &older, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_diff(database, "before.db", NULL, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_ERROR, buckia_diff(database, "missing.db", "later", NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_OK, buckia_diff(database, "before.db", "there.bdiff", NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_ERROR, buckia_diff(database, "before.db", "there.bdiff", NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_resolve(database, NULL, 0, (buckia_version_choice)9, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_resolve(database, NULL, 0, BUCKIA_RESOLVE_VALUES, NULL, NULL, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_init(database, (buckia_trust)9, NULL, &error));
}

/* What the resolver is to do. */
enum behaviour { FAILS, HAS_NO_ANSWER, SETS_NO_VALUE, ABORTS };

static buckia_answer misbehave(void *context, const buckia_conflict *conflict, buckia_row *row) {
  buckia_value none = { .type = BUCKIA_NONE };
  EXPECT(conflict->column_count == 2 && conflict->is_key[0] && !conflict->is_key[1]);
  switch (*(enum behaviour *)context) {
    case FAILS: return BUCKIA_ANSWER_FAIL;
    case HAS_NO_ANSWER: return (buckia_answer)42;
    case ABORTS: return BUCKIA_ANSWER_ABORT;
    case SETS_NO_VALUE:
      EXPECT(buckia_row_set(row, "b", &none) == BUCKIA_MISUSE);
      EXPECT(buckia_row_set(row, NULL, &none) == BUCKIA_MISUSE);
      EXPECT(buckia_row_set(row, "b", NULL) == BUCKIA_MISUSE);
      return BUCKIA_ANSWER_FAIL;
  }
  return BUCKIA_ANSWER_FAIL;
}

static int stop(void *context, const buckia_progress *progress) {
  EXPECT(progress->subject);
  ++*(int *)context;
  return 1;
}

static int refuse(void *context, const void *bytes, size_t length) {
  EXPECT(bytes && length > 0);
  ++*(int *)context;
  return 1;
}

static int count_bytes(void *context, const void *bytes, size_t length) {
  (void)bytes;
  *(size_t *)context += length;
  return 0;
}

static int stop_items(void *context, const char *json) {
  EXPECT(json[0] == '{');
  ++*(int *)context;
  return 1;
}

static void expect_callbacks_can_fail(buckia_database *database, buckia_database *other) {
  int calls = 0;
  buckia_diff_options diff = { .size = sizeof diff, .progress = stop, .progress_context = &calls };
  EXPECT_STATUS(BUCKIA_CANCELLED, buckia_diff(database, "before.db", "outbox", &diff, NULL, &error));
  EXPECT(calls == 1);
  diff = (buckia_diff_options){ .size = sizeof diff, .write = refuse, .write_context = &calls };
  EXPECT_STATUS(BUCKIA_CALLBACK_FAILED, buckia_diff(database, "before.db", NULL, &diff, NULL, &error));
  EXPECT(calls == 2);
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_diff(database, "before.db", "outbox", &diff, NULL, &error));
  size_t written = 0;
  diff = (buckia_diff_options){ .size = sizeof diff, .write = count_bytes, .write_context = &written };
  EXPECT_STATUS(BUCKIA_OK, buckia_diff(database, "before.db", NULL, &diff, NULL, &error));
  EXPECT(written > 0);

  EXPECT_STATUS(BUCKIA_OK, buckia_diff(database, "before.db", "outbox", NULL, NULL, &error));
  const char *paths[] = { "outbox" };
  enum behaviour behaviour = FAILS;
  buckia_apply_options apply = { .size = sizeof apply, .resolve = misbehave, .resolve_context = &behaviour };
  EXPECT_STATUS(BUCKIA_CALLBACK_FAILED, buckia_apply(other, paths, 1, &apply, NULL, NULL, &error));
  behaviour = HAS_NO_ANSWER;
  EXPECT_STATUS(BUCKIA_CALLBACK_FAILED, buckia_apply(other, paths, 1, &apply, NULL, NULL, &error));
  behaviour = SETS_NO_VALUE;
  EXPECT_STATUS(BUCKIA_CALLBACK_FAILED, buckia_apply(other, paths, 1, &apply, NULL, NULL, &error));
  buckia_apply_options stopping = { .size = sizeof stopping, .progress = stop, .progress_context = &calls };
  EXPECT_STATUS(BUCKIA_CANCELLED, buckia_apply(other, paths, 1, &stopping, NULL, NULL, &error));

  buckia_cancellation *cancellation = buckia_cancellation_new();
  stopping = (buckia_apply_options){ .size = sizeof stopping, .cancellation = cancellation };
  buckia_cancel(cancellation);
  EXPECT(buckia_is_cancelled(cancellation));
  EXPECT_STATUS(BUCKIA_CANCELLED, buckia_apply(other, paths, 1, &stopping, NULL, NULL, &error));
  buckia_file_options verifying = { .size = sizeof verifying, .cancellation = cancellation };
  EXPECT_STATUS(BUCKIA_CANCELLED, buckia_verify(paths, 1, &verifying, NULL, NULL, &error));
  buckia_cancellation_free(cancellation);

  /* To refuse a diff is no failure of the call. */
  behaviour = ABORTS;
  buckia_counts counts = { .size = sizeof counts };
  EXPECT_STATUS(BUCKIA_OK, buckia_apply(other, paths, 1, &apply, &counts, NULL, &error));
  EXPECT(counts.rejected == 1 && counts.applied == 0);
  EXPECT_STATUS(BUCKIA_OK, buckia_apply(other, paths, 1, NULL, &counts, NULL, &error));
  EXPECT(counts.applied == 1 && counts.conflicts == 1 && counts.size == sizeof counts);
  calls = 0;
  EXPECT_STATUS(BUCKIA_CANCELLED, buckia_each_conflict(other, NULL, -1, stop_items, &calls, &error));
  EXPECT_STATUS(BUCKIA_CANCELLED, buckia_each_log_entry(other, stop_items, &calls, &error));
  EXPECT(calls == 2);
}

/* Text and blobs of any length, with bytes that end no text. */
static void expect_values_are_whole(void) {
  run("long.db", "CREATE TABLE t(a INTEGER PRIMARY KEY, b); VACUUM INTO 'empty.db';"
                 "INSERT INTO t VALUES (1, zeroblob(9000000) || x'0102'), (2, ''), (3, x''), (4, NULL), (5, 0.5)");
  buckia_database *database = NULL;
  buckia_changes *changes = NULL;
  const buckia_change *change = NULL;
  EXPECT_STATUS(BUCKIA_OK, buckia_open("long.db", &database, &error));
  buckia_diff_options raw = { .size = sizeof raw, .raw = true };
  EXPECT_STATUS(BUCKIA_OK, buckia_diff(database, "empty.db", "long.changeset", &raw, NULL, &error));
  buckia_close(database);
  EXPECT_STATUS(BUCKIA_OK, buckia_changes_open("long.changeset", NULL, &changes, &error));
  EXPECT(buckia_changes_manifest(changes) == NULL);
  int rows = 0;
  while (buckia_changes_next(changes, &change, &error) == BUCKIA_ROW) {
    EXPECT(change->operation == BUCKIA_INSERT && change->old_values == NULL && change->column_count == 2);
    const buckia_value *value = &change->new_values[1];
    int64_t key = change->new_values[0].integer;
    if (key == 1) {
      EXPECT(value->whole_length == 9000002 && (int64_t)value->length <= value->whole_length);
      unsigned char end[4] = { 9, 9, 9, 9 };
      size_t read = 0;
      EXPECT_STATUS(BUCKIA_OK, buckia_changes_read(changes, value, 9000000, end, sizeof end, &read, &error));
      EXPECT(read == 2 && end[0] == 1 && end[1] == 2);
      EXPECT_STATUS(BUCKIA_OK, buckia_changes_read(changes, value, 9000002, end, sizeof end, &read, &error));
      EXPECT(read == 0);
      buckia_value copy = *value;
      EXPECT_STATUS(BUCKIA_MISUSE, buckia_changes_read(changes, &copy, 0, end, sizeof end, &read, &error));
    }
    if (key == 2) EXPECT(value->type == BUCKIA_TEXT && value->length == 0);
    if (key == 3) EXPECT(value->type == BUCKIA_BLOB && value->length == 0);
    if (key == 4) EXPECT(value->type == BUCKIA_NULL);
    if (key == 5) EXPECT(value->type == BUCKIA_REAL && value->real == 0.5);
    rows++;
  }
  EXPECT(rows == 5 && change == NULL);
  buckia_changes_close(changes);
  EXPECT_STATUS(BUCKIA_ERROR, buckia_changes_open_bytes("no changes", 10, NULL, &changes, &error));
  EXPECT_STATUS(BUCKIA_ERROR, buckia_changes_open("missing.changeset", NULL, &changes, &error));
}

/* Another thread's errors are its own. */
static void *fail_again_and_again(void *context) {
  for (int i = 0; i < 200; i++) {
    buckia_error *mine = NULL;
    char path[64];
    snprintf(path, sizeof path, "missing-%s-%d.bdiff", (const char *)context, i);
    buckia_changes *changes = NULL;
    EXPECT(buckia_changes_open(path, NULL, &changes, &mine) == BUCKIA_ERROR);
    EXPECT(strcmp(buckia_error_path(mine), path) == 0 && strcmp(buckia_error_code(mine), "no-such-file") == 0);
    buckia_error_free(mine);
  }
  return NULL;
}

int main(int count, char **arguments) {
  EXPECT(count == 2 && chdir(arguments[1]) == 0);
  expect_nulls_are_refused();
  run("now.db", "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'one');"
                "VACUUM INTO 'before.db'; VACUUM INTO 'other.db'; UPDATE t SET b = 'uno'");
  run("other.db", "UPDATE t SET b = 'eins'");
  buckia_database *database = NULL;
  buckia_database *other = NULL;
  EXPECT_STATUS(BUCKIA_OK, buckia_open("now.db", &database, &error));
  EXPECT_STATUS(BUCKIA_OK, buckia_open("other.db", &other, &error));
  EXPECT_STATUS(BUCKIA_MISUSE, buckia_set_busy_timeout(database, -1, &error));
  EXPECT_STATUS(BUCKIA_OK, buckia_set_home(other, "home", NULL, &error));
  expect_options_are_checked(database);
  expect_callbacks_can_fail(database, other);
  expect_values_are_whole();
  pthread_t threads[2];
  EXPECT(pthread_create(&threads[0], NULL, fail_again_and_again, "a") == 0);
  EXPECT(pthread_create(&threads[1], NULL, fail_again_and_again, "b") == 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);

  /* A database that somebody else has locked. */
  sqlite3 *writer = NULL;
  EXPECT(sqlite3_open("other.db", &writer) == SQLITE_OK);
  EXPECT(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
  EXPECT_STATUS(BUCKIA_OK, buckia_set_busy_timeout(other, 0, &error));
  EXPECT_STATUS(BUCKIA_BUSY, buckia_init(other, BUCKIA_TRUST_ANY, NULL, &error));
  sqlite3_close(writer);
  EXPECT_STATUS(BUCKIA_OK, buckia_init(other, BUCKIA_TRUST_ANY, NULL, &error));

  buckia_close(database);
  buckia_close(other);
  puts("done");
  return 0;
}
