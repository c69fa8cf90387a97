/*
 * Buckia for C, and for whatever can call C.
 *
 * Buckia sends the changes of one SQLite database to another and applies what others send back: offline, exactly once,
 * without a server.
 *
 *   buckia_database *db = NULL;
 *   buckia_error *error = NULL;
 *   char *report = NULL;
 *   const char *inbound[] = { "inbound" };
 *   if (buckia_open("notes.sqlite", &db, &error) == BUCKIA_OK
 *       && buckia_apply(db, inbound, 1, NULL, NULL, &report, &error) == BUCKIA_OK)
 *     puts(report);
 *   else
 *     fprintf(stderr, "%s\n", buckia_error_message(error));
 *   buckia_free(report);
 *   buckia_error_free(error);
 *   buckia_close(db);
 *
 * TEXT is UTF-8 that ends with a NUL, paths included. What is not UTF-8 is refused with BUCKIA_MISUSE.
 *
 * ERRORS. Every function that can fail returns a `buckia_status` and takes a `buckia_error **` last. Where that is not
 * NULL, it gets an error that the caller frees with `buckia_error_free`, or NULL when nothing failed. What it held before is
 * not read. No error is kept anywhere else, so threads never see each other's. A NULL where something is needed, or a
 * value that no enum has, gives BUCKIA_MISUSE and does nothing else. No function ends the process.
 *
 * RESULTS. An argument that a result goes to may be NULL when it is not wanted. A `char **` gets text that the caller frees
 * with `buckia_free`, or NULL when there is none. JSON is one document with "version": 1, the one that the command
 * `buckia` prints with --json for the verb of the same name.
 *
 * OPTIONS are structs that begin with their size, so that later versions can add members at the end. Those that are zero
 * stand for the usual. NULL in the place of options is the same as all zero.
 *
 *   buckia_apply_options options = { .size = sizeof options, .on_conflict = BUCKIA_TAKE_INCOMING };
 *
 * Structs that Buckia hands to callbacks, and changes, can get members at the end, too.
 *
 * LIFETIME. What is passed to a function is only read while it runs. What a callback is given is good until it returns.
 * Each object has a function that frees it, which takes NULL; after that it must not be used or freed again.
 *
 * THREADS. Functions may be called in any number of threads at once. One object may be used by one thread at a time, with
 * two exceptions: a `buckia_database` of a path may be used by several threads, and a `buckia_cancellation` is for that.
 * Callbacks run in the thread that has called.
 *
 * CALLBACKS get the `context` that stands beside them. They must return normally: longjmp or a C++ exception through
 * Buckia is undefined. They must not use the database that is at work, nor write to it in another way.
 */

#ifndef BUCKIA_H
#define BUCKIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Stands before each function of the library. */
#define BUCKIA_API extern

/** SQLite's own type, so that sqlite3.h need not be included. */
struct sqlite3;

/* ---------------------------------------------------------------- Version */

/** The version of this interface. It changes when a program that was compiled with another one does not fit any more. */
#define BUCKIA_ABI_VERSION 1

/** The interface that the library has. A program should compare it with BUCKIA_ABI_VERSION where the two come separately. */
BUCKIA_API int buckia_abi_version(void);

/** The version of Buckia, such as "0.1.0". It stays forever and is not freed. */
BUCKIA_API const char *buckia_version(void);

/** The versions of Buckia, SQLite and zstd in one line, for bug reports. The caller frees it with `buckia_free`. */
BUCKIA_API char *buckia_version_text(void);

/** Frees text that a function has given. NULL is fine. */
BUCKIA_API void buckia_free(void *memory);

/* ----------------------------------------------------------------- Errors */

typedef enum buckia_status {
  BUCKIA_OK = 0,
  /** It failed; the error says why. Nothing was changed, unless the function says otherwise. */
  BUCKIA_ERROR = 1,
  /** Another program has locked the database: the same call may succeed later. */
  BUCKIA_BUSY = 3,
  /** A progress callback or a cancellation wanted to stop. */
  BUCKIA_CANCELLED = 4,
  /** A callback has failed: it said so, or gave an answer that is none. */
  BUCKIA_CALLBACK_FAILED = 5,
  /** The arguments are wrong. */
  BUCKIA_MISUSE = 64,
  /** Of an iteration: there is a change. */
  BUCKIA_ROW = 100,
  /** Of an iteration: there are no more. */
  BUCKIA_DONE = 101
} buckia_status;

/** What went wrong. All its texts belong to it and are good until it is freed. Each of these functions takes NULL, too. */
typedef struct buckia_error buckia_error;

/** What the function returned that gave it; BUCKIA_OK for NULL. */
BUCKIA_API buckia_status buckia_error_status(const buckia_error *error);
/** A word that stays, such as "busy", "no-such-file" or "misuse", for programs; "" for NULL. */
BUCKIA_API const char *buckia_error_code(const buckia_error *error);
/** A sentence for people: what happened and what to do; "" for NULL. */
BUCKIA_API const char *buckia_error_message(const buckia_error *error);
/** The file that it is about; NULL where it is about none. */
BUCKIA_API const char *buckia_error_path(const buckia_error *error);
/** The document that --json prints for it, with the message above: {"version":1,"error":{"code","message","path","offset"}}; NULL
   for NULL. */
BUCKIA_API const char *buckia_error_json(const buckia_error *error);
BUCKIA_API void buckia_error_free(buckia_error *error);

/* ----------------------------------------------------------------- Values */

/** The numbers of the last five are those of SQLite's SQLITE_INTEGER, SQLITE_FLOAT and so on. */
typedef enum buckia_type {
  /** No value: the change says nothing of this column. */
  BUCKIA_NONE = 0,
  BUCKIA_INTEGER = 1,
  BUCKIA_REAL = 2,
  BUCKIA_TEXT = 3,
  BUCKIA_BLOB = 4,
  BUCKIA_NULL = 5
} buckia_type;

/** One value of a row. */
typedef struct buckia_value {
  buckia_type type;
  /** Of BUCKIA_INTEGER. */
  int64_t integer;
  /** Of BUCKIA_REAL. */
  double real;
  /** Of BUCKIA_TEXT and BUCKIA_BLOB: `length` bytes, with no NUL behind them. May be NULL when `length` is 0. */
  const void *bytes;
  size_t length;
  /** How many bytes text or blob has in all. It is more than `length` only in changes of more than 8 MiB that
     `buckia_changes_next` gives; `buckia_changes_read` reads the rest. Ignored in values that a program gives. */
  int64_t whole_length;
} buckia_value;

/** A column and its value. */
typedef struct buckia_cell {
  const char *column;
  buckia_value value;
} buckia_cell;

typedef enum buckia_operation {
  /** Only of a conflict that is about a whole file. */
  BUCKIA_NO_OPERATION = 0,
  BUCKIA_INSERT = 1,
  BUCKIA_UPDATE = 2,
  BUCKIA_DELETE = 3
} buckia_operation;

/* -------------------------------------------------- Progress, cancellation */

typedef enum buckia_activity {
  BUCKIA_COMPARING = 1,
  BUCKIA_VERIFYING = 2,
  BUCKIA_APPLYING = 3,
  BUCKIA_REWRITING = 4,
  /** Of calls that count nothing: it only asks if they are to stop. */
  BUCKIA_WORKING = 5
} buckia_activity;

/** How far a call has come. What does not fit the activity is 0. */
typedef struct buckia_progress {
  buckia_activity activity;
  /** The table that is compared, or the file that is worked on; "" where it is neither. */
  const char *subject;
  /** How many files are done, and how many there are. */
  int64_t files;
  int64_t file_count;
  /** How many rows of the present table have been compared, or changes of the present file applied or rewritten. */
  int64_t rows;
  /** How many bytes have been read, or belong to files that are done, and how many there are. */
  int64_t bytes;
  int64_t byte_count;
} buckia_progress;

/** Is told now and then how far a call has come, also when there is nothing new. Anything but 0 stops the call, which then returns
   BUCKIA_CANCELLED. */
typedef int (*buckia_progress_callback)(void *context, const buckia_progress *progress);

/** A way to stop calls from another thread. */
typedef struct buckia_cancellation buckia_cancellation;

/** NULL only when there is no memory left. Freed with `buckia_cancellation_free`, when no call uses it any more. */
BUCKIA_API buckia_cancellation *buckia_cancellation_new(void);
/** Stops all calls that have it in their options, and those to come. They return BUCKIA_CANCELLED, with everything as it was
   before, or as far as whole files were done. May be called in any thread. */
BUCKIA_API void buckia_cancel(buckia_cancellation *cancellation);
BUCKIA_API bool buckia_is_cancelled(const buckia_cancellation *cancellation);
BUCKIA_API void buckia_cancellation_free(buckia_cancellation *cancellation);

/* -------------------------------------------------------------- Databases */

/** One database and what can be done with it. */
typedef struct buckia_database buckia_database;

/** Takes a database file, which need not exist before a call needs it. Each call opens it and closes it again. */
BUCKIA_API buckia_status buckia_open(const char *path, buckia_database **database, buckia_error **error);

/** Works on a connection that the program has opened itself.
 *
 * The connection stays the program's: it is not closed, and must stay open until `buckia_close`. Inside a transaction that the
 * program has begun, everything becomes a part of that, and applied files stay in their folders. While a call runs, no other thread
 * may use the connection.
 *
 * `routines`: NULL when the copy of SQLite that has opened it is the one that Buckia is linked with. Else the `sqlite3_api_routines *`
 * of that copy, which it passes to loadable extensions and to entry points registered with `sqlite3_auto_extension`. The copy must
 * stay loaded. A connection of another copy is refused, if that can be told.
 */
BUCKIA_API buckia_status buckia_open_handle(
    struct sqlite3 *handle, const void *routines, buckia_database **database, buckia_error **error);

/** Gives the address of a function of SQLite, such as "sqlite3_step"; NULL where there is none. As dlsym does. */
typedef void *(*buckia_symbol_callback)(void *context, const char *name);

/** The same for a copy of SQLite whose functions are known by their names, as of a library that was loaded with dlopen. `find` is
   called before this returns, and not later. */
BUCKIA_API buckia_status buckia_open_handle_finding(
    struct sqlite3 *handle, buckia_symbol_callback find, void *context, buckia_database **database,
    buckia_error **error);

/** Frees it. A connection of the program stays open. No call may be running with it. */
BUCKIA_API void buckia_close(buckia_database *database);

/** Says where the person's own files are: identity, contacts, the clock of the ids. To be called before other threads use the
   database.

   `home`: a folder, which is made when something is kept in it; NULL for $BUCKIA_HOME, else the one of the system.
   `passphrase`: what opens the identity where it is protected; NULL where it is not. */
BUCKIA_API buckia_status buckia_set_home(
    buckia_database *database, const char *home, const char *passphrase, buckia_error **error);

/** Says how long to wait for another program's lock; 10,000 milliseconds if nothing is said. A connection of the program waits as
   the program has set it. To be called before other threads use the database. */
BUCKIA_API buckia_status buckia_set_busy_timeout(buckia_database *database, int milliseconds, buckia_error **error);

typedef enum buckia_trust {
  /** As the database says; any in a new one. */
  BUCKIA_TRUST_AS_IS = 0,
  /** Diff files of any sender are applied. */
  BUCKIA_TRUST_ANY = 1,
  /** Only those signed by a trusted contact are. */
  BUCKIA_TRUST_KNOWN = 2
} buckia_trust;

/** Makes the ledger tables, and the database when there is none. `buckia_apply` does it, too. JSON: that of `init`. */
BUCKIA_API buckia_status buckia_init(
    buckia_database *database, buckia_trust trust, char **json, buckia_error **error);

/* ------------------------------------------------------------------- Diff */

typedef enum buckia_method {
  BUCKIA_METHOD_AUTO = 0,
  BUCKIA_METHOD_PAGES = 1,
  BUCKIA_METHOD_ROWS = 2,
  BUCKIA_METHOD_SESSION = 3
} buckia_method;

/** Gets the bytes of a file piece by piece, when all is known to be well. Anything but 0 stops the call, which then returns
   BUCKIA_CALLBACK_FAILED. */
typedef int (*buckia_write_callback)(void *context, const void *bytes, size_t length);

typedef struct buckia_diff_options {
  size_t size;
  /** The tables to compare; none for all. */
  const char *const *tables;
  size_t table_count;
  buckia_method method;
  /** Writes a bare SQLite changeset, without table definitions. */
  bool raw;
  /** Replaces a file that is there already. */
  bool replace;
  /** Compares databases that share no table. */
  bool unrelated;
  /** Sends again what was sent since the snapshot was made that the older database is. */
  bool again;
  /** Signs with the identity of the home folder. */
  bool sign;
  /** Takes the file instead of a path; `output` must be NULL then. */
  buckia_write_callback write;
  void *write_context;
  buckia_progress_callback progress;
  void *progress_context;
  buckia_cancellation *cancellation;
} buckia_diff_options;

/** Writes what turns an older database into this one into a diff file.
 *
 * `older`: the path of the database as it was; NULL for none, so that all rows are new.
 * `output`: a folder, which is made when it is missing and gets a file named by its id; a path that ends in .bdiff or .changeset, or
 * names an existing file, is the file itself. NULL for `options->write`.
 *
 * When nothing has changed, no file is written, and "id" and "path" of the JSON are null. JSON: that of `diff`.
 */
BUCKIA_API buckia_status buckia_diff(
    buckia_database *database, const char *older, const char *output, const buckia_diff_options *options, char **json,
    buckia_error **error);

/* ------------------------------------------------------------------ Share */

typedef struct buckia_share_options {
  size_t size;
  /** Writes a file that everybody can read. It is signed if there is an identity. */
  bool unencrypted;
  /** Writes nothing: the JSON says which rows would leave. */
  bool dry_run;
  /** Sends all rows again. */
  bool resync;
  /** Leaves rows that are not shared any more where they were sent; otherwise they are withdrawn. */
  bool keep_on_leave;
  /** Deletes rows there, too, that went here because of an undo or because somebody does not share them any more. */
  bool propagate;
  /** Writes a file where nothing has changed if changes of others have been applied since the last one: it tells so. */
  bool acknowledge;
  /** Replaces a file that is there already. */
  bool replace;
  /** Takes the file instead of a path; `output` must be NULL then. */
  buckia_write_callback write;
  void *write_context;
  buckia_progress_callback progress;
  void *progress_context;
  buckia_cancellation *cancellation;
} buckia_share_options;

/** Shares some rows with others: all of them first, then what has changed. Not inside a transaction of the program.
 *
 * `scope`: what is shared, as the JSON that Schemas/scope.md describes; NULL for the only one that is shared with these recipients.
 * `recipients`: each the name of a contact, a card or the path of one, or a recipient age1…
 * `output`: as in `buckia_diff`.
 *
 * The file is encrypted for the recipients and signed with the identity of the home folder. When nothing has changed, no file is
 * written. JSON: that of `share`.
 */
BUCKIA_API buckia_status buckia_share(
    buckia_database *database, const char *scope, const char *const *recipients, size_t recipient_count,
    const char *output, const buckia_share_options *options, char **json, buckia_error **error);

/* ------------------------------------------------------------------ Apply */

typedef enum buckia_policy {
  BUCKIA_KEEP_LOCAL = 0,
  BUCKIA_TAKE_INCOMING = 1,
  /** The whole diff is refused. */
  BUCKIA_ABORT = 2,
  /** The change of the later diff wins. */
  BUCKIA_LATEST = 3
} buckia_policy;

/** A policy for a table, or for one of its columns. */
typedef struct buckia_table_policy {
  const char *table;
  /** NULL for the table. */
  const char *column;
  buckia_policy policy;
} buckia_table_policy;

typedef enum buckia_schema {
  /** Missing tables and columns are made. */
  BUCKIA_SCHEMA_ADDITIVE = 0,
  /** Any difference refuses the file. */
  BUCKIA_SCHEMA_EXACT = 1,
  /** What is unknown is kept until the program's own upgrade has made a place for it. */
  BUCKIA_SCHEMA_HOLD = 2,
  /** The schema becomes the author's. */
  BUCKIA_SCHEMA_ADOPT = 3
} buckia_schema;

typedef enum buckia_conflict_kind {
  /** UPDATE or DELETE: the row is there, with other values than its author had. */
  BUCKIA_CONFLICT_DATA = 1,
  /** UPDATE or DELETE: the row is not there. */
  BUCKIA_CONFLICT_NOT_FOUND = 2,
  /** INSERT: a row with this key is there already. */
  BUCKIA_CONFLICT_CONFLICT = 3,
  /** A constraint or a trigger refuses the row. */
  BUCKIA_CONFLICT_CONSTRAINT = 4,
  /** The row refers to one that is not there, or that is another one here than its author means. */
  BUCKIA_CONFLICT_FOREIGN_KEY = 5
} buckia_conflict_kind;

/** One conflict: three versions of a row. */
typedef struct buckia_conflict {
  /** "" for the BUCKIA_CONFLICT_FOREIGN_KEY that is asked about once for a whole file. */
  const char *table;
  buckia_conflict_kind kind;
  buckia_operation operation;
  size_t column_count;
  /** The names of the columns, and which of them are the key. */
  const char *const *columns;
  const bool *is_key;
  /** The row that its author had, as far as the change tells; NULL where there was none. */
  const buckia_value *base;
  /** The row here; NULL where there is none. */
  const buckia_value *local;
  /** The row as its author wants it; columns that the change leaves alone are BUCKIA_NONE. NULL for a DELETE. */
  const buckia_value *incoming;
  /** Why the row is refused; NULL where `kind` says all. */
  const char *reason;
  /** How many rows the file has left with references that lead nowhere, where it is about a whole file; else 0. */
  int64_t violations;
} buckia_conflict;

typedef enum buckia_answer {
  /** What the policies say. Columns that only one side has changed merge. */
  BUCKIA_ANSWER_DEFAULT = 0,
  BUCKIA_ANSWER_LOCAL = 1,
  BUCKIA_ANSWER_INCOMING = 2,
  /** Refuse the whole diff. */
  BUCKIA_ANSWER_ABORT = 3,
  /** Write the values that `buckia_row_set` was given. */
  BUCKIA_ANSWER_ROW = 4,
  /** The program has failed: stop the call, which then returns BUCKIA_CALLBACK_FAILED. */
  BUCKIA_ANSWER_FAIL = 5
} buckia_answer;

/** A row that a resolver makes up. It belongs to Buckia and is good until the callback returns. */
typedef struct buckia_row buckia_row;

/** Sets the value of a column, which is copied. Columns that are not set keep the local value, or get the incoming one where there is
   no local row. Where there is a local row, its key stays. BUCKIA_MISUSE for BUCKIA_NONE. */
BUCKIA_API buckia_status buckia_row_set(buckia_row *row, const char *column, const buckia_value *value);

/** Is asked about each conflict, before the policies; again about the same one where files are applied again because one of them
   failed. It runs inside the transaction. */
typedef buckia_answer (*buckia_conflict_callback)(void *context, const buckia_conflict *conflict, buckia_row *row);

/** Columns of a table. */
typedef struct buckia_table_columns {
  const char *table;
  const char *const *columns;
  size_t column_count;
} buckia_table_columns;

/** What to do about the first diff of a sender whose rows are mostly here already, as in a copy of the database. */
typedef enum buckia_copies {
  /** It is refused, with the reason. */
  BUCKIA_COPIES_ASK = 0,
  /** Rows with the same key are the same rows. */
  BUCKIA_COPIES_SAME = 1,
  /** Rows with the same key that differ stay beside each other. */
  BUCKIA_COPIES_APART = 2
} buckia_copies;

typedef struct buckia_apply_options {
  size_t size;
  buckia_policy on_conflict;
  /** Policies of tables and columns that have another one. */
  const buckia_table_policy *policies;
  size_t policy_count;
  buckia_schema schema;
  /** Whose files are applied from now on. */
  buckia_trust trust;
  /** True if the database's triggers fire. */
  bool triggers;
  /** Leaves applied files in their folders. */
  bool keep;
  /** Removes applied files that were named by themselves, too. */
  bool remove;
  /** Changes nothing: the JSON says what would happen. */
  bool dry_run;
  /** Refuses files of a dataset where the database belongs to none. Otherwise the first one makes it belong to that. */
  bool refuse_new_dataset;
  /** Where a copy of the database goes that the next diff is made from; NULL for none. */
  const char *snapshot;
  /** How many bytes SQLite may take up for pages and sorting; 0 for 256 MiB. */
  int64_t memory;
  /** Files of identities that open encrypted files beside the person's own. */
  const char *const *identities;
  size_t identity_count;
  /** The passphrase of files that were encrypted with one; NULL for none. */
  const char *passphrase;
  /** Columns in which nothing is taken but with new rows, and nothing is a conflict. */
  const buckia_table_columns *ignored;
  size_t ignored_count;
  /** By which columns rows of shares are the same that both sides have added under different numbers. */
  const buckia_table_columns *matches;
  size_t match_count;
  buckia_copies copies;
  buckia_conflict_callback resolve;
  void *resolve_context;
  buckia_progress_callback progress;
  void *progress_context;
  buckia_cancellation *cancellation;
} buckia_apply_options;

/** What became of the files, in numbers. */
typedef struct buckia_counts {
  /** Set by the program. */
  size_t size;
  int64_t applied;
  int64_t already_applied;
  int64_t waiting;
  int64_t held;
  int64_t quarantined;
  int64_t rejected;
  /** Rows. */
  int64_t inserted;
  int64_t updated;
  int64_t deleted;
  int64_t conflicts;
} buckia_counts;

/** Applies diff files, raw changesets and whole inbound folders, each file exactly once.
 *
 * A file that is damaged or refused changes nothing, is recorded with the reason and does not stop the others: that is no error,
 * and the report says so. Applied files are removed from folders, unless the options or a transaction of the program keep them.
 *
 * When the work was stopped and some files were done before, the report tells of those and has the error, and both
 * `json` and `error` are set. JSON: that of `apply`.
 */
BUCKIA_API buckia_status buckia_apply(
    buckia_database *database, const char *const *paths, size_t path_count, const buckia_apply_options *options,
    buckia_counts *counts, char **json, buckia_error **error);

/* ------------------------------------------------------- Conflicts and log */

/** Which recorded conflicts are meant. */
typedef struct buckia_conflict_filter {
  size_t size;
  /** Those of this table; NULL for all. */
  const char *table;
  /** Those of this diff: its id, or the digest of a raw changeset; NULL for all. */
  const char *diff;
  /** Those of this kind; 0 for all. */
  buckia_conflict_kind kind;
  /** Those that are not decided yet. */
  bool open;
} buckia_conflict_filter;

/** The recorded conflicts, oldest first.

   `filter`: NULL for all of them. `newest`: at most so many; a negative number for all, 0 for the summary alone.
   JSON: that of `conflicts`. */
BUCKIA_API buckia_status buckia_conflicts(
    buckia_database *database, const buckia_conflict_filter *filter, int64_t newest, char **json, buckia_error **error);

/** Gets one item of a list, as JSON. Anything but 0 stops the call, which then returns BUCKIA_CANCELLED. */
typedef int (*buckia_item_callback)(void *context, const char *json);

/** The same, one conflict after the other: all of them need not fit in memory. */
BUCKIA_API buckia_status buckia_each_conflict(
    buckia_database *database, const buckia_conflict_filter *filter, int64_t newest, buckia_item_callback item,
    void *context, buckia_error **error);

typedef enum buckia_version_choice {
  /** The row as it was here. */
  BUCKIA_RESOLVE_LOCAL = 1,
  /** The row as the author of the change wants it. */
  BUCKIA_RESOLVE_INCOMING = 2,
  /** The values of the options. */
  BUCKIA_RESOLVE_VALUES = 3,
  /** Both rows, where two different ones have the same key: the one that is not there gets a new key. */
  BUCKIA_RESOLVE_BOTH = 4,
  /** The local row that has the UNIQUE value of the incoming one stands for both. */
  BUCKIA_RESOLVE_SAME = 5
} buckia_version_choice;

typedef struct buckia_resolve_options {
  size_t size;
  /** Of BUCKIA_RESOLVE_VALUES: columns and what they get. */
  const buckia_cell *values;
  size_t value_count;
  /** The recorded name of the person who decides; NULL for no name. */
  const char *decided_by;
  /** Overwrites rows that were changed since, and lets rows refer to others that are not there. */
  bool force;
  /** Keeps the answer as a rule for later conflicts with the same question. */
  bool remember;
  bool dry_run;
  buckia_progress_callback progress;
  void *progress_context;
  buckia_cancellation *cancellation;
} buckia_resolve_options;

/** Decides recorded conflicts by their numbers, and changes the rows accordingly. A conflict that cannot be resolved does not stop the
   others: the report says why. JSON: that of `resolve`. */
BUCKIA_API buckia_status buckia_resolve(
    buckia_database *database, const int64_t *conflicts, size_t conflict_count, buckia_version_choice choice,
    const buckia_resolve_options *options, char **json, buckia_error **error);

/** The same for all those of a filter; NULL for all there are. */
BUCKIA_API buckia_status buckia_resolve_all(
    buckia_database *database, const buckia_conflict_filter *filter, buckia_version_choice choice,
    const buckia_resolve_options *options, char **json, buckia_error **error);

/** The answers that are kept as rules. JSON: that of `conflicts --rules`. */
BUCKIA_API buckia_status buckia_rules(buckia_database *database, char **json, buckia_error **error);
BUCKIA_API buckia_status buckia_forget_rule(buckia_database *database, int64_t rule, buckia_error **error);

/** What has reached the database, oldest first. `newest`: at most so many; a negative number for all. JSON: that of `log`. */
BUCKIA_API buckia_status buckia_log(buckia_database *database, int64_t newest, char **json, buckia_error **error);

/** The same, one entry after the other: all of them need not fit in memory. */
BUCKIA_API buckia_status buckia_each_log_entry(
    buckia_database *database, buckia_item_callback item, void *context, buckia_error **error);

typedef struct buckia_undo_options {
  size_t size;
  /** What to do about rows that have been changed since. */
  buckia_policy on_conflict;
  bool dry_run;
  /** Takes back all that came from these senders: names of contacts, keys as the log shows them, or "unsigned". */
  const char *const *senders;
  size_t sender_count;
  buckia_progress_callback progress;
  void *progress_context;
  buckia_cancellation *cancellation;
} buckia_undo_options;

/** Takes back what diffs did, the newest first.

   `diffs`: ids, or digests of raw changesets. An undo has an id, too, and can be taken back. JSON: that of `undo`. */
BUCKIA_API buckia_status buckia_undo(
    buckia_database *database, const char *const *diffs, size_t diff_count, const buckia_undo_options *options,
    char **json, buckia_error **error);

/* ------------------------------------------------------------------ Files */

/** How files are read that no database is needed for. */
typedef struct buckia_file_options {
  size_t size;
  /** As in `buckia_set_home`. */
  const char *home;
  const char *home_passphrase;
  /** Files of identities that open encrypted files beside the person's own. */
  const char *const *identities;
  size_t identity_count;
  /** The passphrase of files that were encrypted with one; NULL for none. */
  const char *passphrase;
  /** Of functions that write: replaces a file that is there already. */
  bool replace;
  buckia_progress_callback progress;
  void *progress_context;
  buckia_cancellation *cancellation;
} buckia_file_options;

/** Does what a command of `buckia` does that has no function of its own. `arguments`: a JSON object; NULL for none. JSON: that of the
   command. `database`: NULL for commands that need none; `options` then have the home folder.

   init              trust (any or known), dataset (new, or an id; both optional). As buckia_init does; a dataset is begun before
                     the database is copied.
   identity new      name
   identity show, identity rotate, contact list
   contact add       card (the line of a card or a rotation), name (optional)
   contact trust     name, fingerprint
   contact rename    name, newName
   contact remove    name
   invite            scope (an object), to, folder, expires (days; all three optional)
   accept            invitation (the line), output, name, replace (both optional)
   status            words (true or false)
   doctor
   snapshot          path
   clocks            tables (a list; all where it is missing)
   merge             theirs, base, output, onConflict, onConflictIn (an object of tables and their policies), onConflictInColumns (an
                     object of tables, each an object of columns and their policies), replace, unrelated, dryRun, ignore, match
                     (objects of tables and lists of their columns), rename (an object of tables, each an object of the former
                     names of columns and their new ones; all but theirs optional)
   encrypt           path, output, to (a list) or passphrase, armor, replace
   decrypt           path, output, replace; the options have identities and passphrase

   For backups. A store is a folder; `options` have the identities that open an encrypted one. The database is opened by its path.

   backup            store, note, to (a list), keep (rules), drill, unencrypted, unsigned, acceptDamage (all but store optional)
   history           store
   restore           store, at (a time or id), history, output (a new file; without it, the content of the database is replaced;
                     all but store optional)
   restore rows      store, scope (an object), at, history, onConflict, deleteNewer, dryRun (all but store and scope optional)
   prune             store, keep, history, to (a list), dryRun (the last three optional)
   prune undo        store
   verify store      store

   An argument that the command does not have gives BUCKIA_MISUSE. */
BUCKIA_API buckia_status buckia_call(
    buckia_database *database, const char *command, const char *arguments, const buckia_file_options *options,
    char **json, buckia_error **error);

/** Opens and checks files and folders completely, and changes nothing. A file that is not in order is no error: the report says what
   is wrong with it. `all_good`: true if all are in order. JSON: that of `verify`. */
BUCKIA_API buckia_status buckia_verify(
    const char *const *paths, size_t path_count, const buckia_file_options *options, bool *all_good, char **json,
    buckia_error **error);

/** Writes the changes that undo those of a diff file or a raw changeset. `output`: as in `buckia_diff`. Encrypted
   files are refused. JSON: that of `changeset invert`. */
BUCKIA_API buckia_status buckia_invert(
    const char *path, const char *output, const buckia_file_options *options, char **json, buckia_error **error);

/** Joins the changes of files, oldest first, so that each row is changed once. JSON: that of `changeset concat`. */
BUCKIA_API buckia_status buckia_concat(
    const char *const *paths, size_t path_count, const char *output, const buckia_file_options *options, char **json,
    buckia_error **error);

/** The changes of a diff file or a raw changeset, read one after the other in little memory. */
typedef struct buckia_changes buckia_changes;

/** One change of one row. It belongs to the iteration, and is good until its next call. */
typedef struct buckia_change {
  const char *table;
  buckia_operation operation;
  /** True if a trigger or a foreign-key action has made it. */
  bool indirect;
  size_t column_count;
  /** The names of the columns, and which of them are the key. A raw changeset has no names: they are "column 1" and so on. */
  const char *const *columns;
  const bool *is_key;
  /** `column_count` values before and after the change; BUCKIA_NONE where it says nothing. NULL for an INSERT and a DELETE,
     respectively. */
  const buckia_value *old_values;
  const buckia_value *new_values;
} buckia_change;

/** Opens a file, which is checked completely first. */
BUCKIA_API buckia_status buckia_changes_open(
    const char *path, const buckia_file_options *options, buckia_changes **changes, buckia_error **error);

/** The same for the bytes of a file, which are copied. */
BUCKIA_API buckia_status buckia_changes_open_bytes(
    const void *bytes, size_t length, const buckia_file_options *options, buckia_changes **changes,
    buckia_error **error);

/** The manifest of a diff file as JSON; NULL for a raw changeset. It belongs to the iteration. */
BUCKIA_API const char *buckia_changes_manifest(const buckia_changes *changes);

/** Gives the next change: BUCKIA_ROW, or BUCKIA_DONE and NULL when there are no more. */
BUCKIA_API buckia_status buckia_changes_next(
    buckia_changes *changes, const buckia_change **change, buckia_error **error);

/** Reads a part of a long value.

   `value`: one of the present change's. `offset`: where to begin. `buffer`: gets up to `length` bytes. `read`: gets how many; 0 at
   the end. */
BUCKIA_API buckia_status buckia_changes_read(
    buckia_changes *changes, const buckia_value *value, int64_t offset, void *buffer, size_t length, size_t *read,
    buckia_error **error);

BUCKIA_API void buckia_changes_close(buckia_changes *changes);

/* -------------------------------------------------------------------- Ids */

/** The length of the text of an id, and of its bytes. */
#define BUCKIA_KSUID_TEXT_LENGTH 27
#define BUCKIA_KSUID_BYTE_COUNT 20

/** An id. Its text and its bytes sort by time. */
typedef struct buckia_ksuid {
  /** The text, with a NUL behind it. */
  char text[BUCKIA_KSUID_TEXT_LENGTH + 1];
  uint8_t bytes[BUCKIA_KSUID_BYTE_COUNT];
  /** The time it was made, in seconds since 1970. */
  int64_t unix_seconds;
} buckia_ksuid;

/** Makes a new id, greater than all made before. `home`: where the clock of the ids is kept, as in `buckia_set_home`. */
BUCKIA_API buckia_status buckia_ksuid_new(const char *home, buckia_ksuid *id, buckia_error **error);

/** Takes the text of an id apart. */
BUCKIA_API buckia_status buckia_ksuid_parse(const char *text, buckia_ksuid *id, buckia_error **error);

#ifdef __cplusplus
}
#endif

#endif
