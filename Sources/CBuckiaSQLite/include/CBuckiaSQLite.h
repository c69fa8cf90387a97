// SQLite's C API, called through a table of its functions.
//
// Nothing in this header names a symbol of an SQLite library. Every call goes through `sqlite3_api_routines`, the table
// that SQLite passes to loadable extensions (https://sqlite.org/c3ref/api_routines.html), so that one process can work
// with several copies of SQLite. The session extension is not part of that table and has one of its own.

#ifndef BUCKIA_SQLITE_H
#define BUCKIA_SQLITE_H

// Without this, sqlite3ext.h makes a macro of each function name.
#define SQLITE_CORE 1
#include <sqlite3ext.h>
#undef SQLITE_CORE
#include <stdbool.h>

#pragma clang assume_nonnull begin

// A table of functions never changes once it is in use.
#define BUCKIA_SENDABLE __attribute__((swift_attr("@Sendable")))

// MARK: The table that every copy of SQLite has

/// The functions of one copy of SQLite.
typedef struct BUCKIA_SENDABLE SQLiteRoutines {
  const sqlite3_api_routines *table;
} SQLiteRoutines;

/// The oldest version whose table has all entries of `BUCKIA_ROUTINES`; `changes64` is the youngest. The entries of newer
/// versions lie behind the end of an older table and must not be read.
#define BUCKIA_OLDEST_SQLITE 3037000

// The functions in use: result, name, Swift's argument labels, how to call it, and the parameters that Swift sees.
#define BUCKIA_ROUTINES(R)                                                                                             \
  /* The library */                                                                                                    \
  R(const char *, libversion, "", ())                                                                                  \
  R(int, libversion_number, "", ())                                                                                    \
  R(sqlite3_vfs *_Nullable, vfs_find, "_:", (name), const char *_Nullable name)                                        \
  R(const char *_Nullable, errstr, "_:", (code), int code)                                                             \
  R(void *_Nullable, malloc, "_:", (count), int count)                                                                 \
  R(void, free, "_:", (memory), void *_Nullable memory)                                                                \
  /* Connections */                                                                                                    \
  R(int, open_v2, "_:_:_:", (path, db, flags, 0), const char *path, sqlite3 *_Nullable *_Nonnull db, int flags)        \
  R(int, close_v2, "_:", (db), sqlite3 *_Nullable db)                                                                  \
  R(int, busy_timeout, "_:_:", (db, milliseconds), sqlite3 *db, int milliseconds)                                      \
  R(int, exec, "_:_:", (db, sql, 0, 0, 0), sqlite3 *db, const char *sql)                                               \
  R(int, get_autocommit, "_:", (db), sqlite3 *db)                                                                      \
  R(int, txn_state, "_:_:", (db, schema), sqlite3 *db, const char *_Nullable schema)                                   \
  R(int, db_readonly, "_:_:", (db, schema), sqlite3 *db, const char *schema)                                           \
  R(sqlite3_int64, changes64, "_:", (db), sqlite3 *db)                                                                 \
  R(sqlite3_int64, total_changes64, "_:", (db), sqlite3 *db)                                                           \
  R(int, limit, "_:_:", (db, limit, -1), sqlite3 *db, int limit)                                                       \
  R(int, db_status, "_:_:_:_:", (db, option, current, highest, 0), sqlite3 *db, int option, int *current, int *highest)\
  R(int, db_config, "_:_:_:_:", (db, option, value, result), sqlite3 *db, int option, int value, int *result)          \
  R(int, set_authorizer, "_:_:_:", (db, authorize, context), sqlite3 *db,                                              \
    int (*_Nullable authorize)(void *_Nullable, int, const char *_Nullable, const char *_Nullable,                     \
                               const char *_Nullable, const char *_Nullable), void *_Nullable context)                 \
  R(const char *_Nullable, db_filename, "_:_:", (db, schema), sqlite3 *db, const char *schema)                         \
  R(const char *_Nullable, errmsg, "_:", (db), sqlite3 *db)                                                            \
  R(int, extended_errcode, "_:", (db), sqlite3 *db)                                                                    \
  R(int, file_control, "_:_:_:_:", (db, schema, operation, argument),                                                  \
    sqlite3 *db, const char *schema, int operation, void *argument)                                                    \
  R(int, db_cacheflush, "_:", (db), sqlite3 *db)                                                                       \
  R(void, progress_handler, "_:_:_:_:", (db, operations, handler, context),                                            \
    sqlite3 *db, int operations, int (*_Nullable handler)(void *_Nullable), void *_Nullable context)                   \
  R(int, table_column_metadata, "_:_:_:_:_:_:", (db, schema, table, column, 0, collation, 0, 0, is_autoincrement),     \
    sqlite3 *db, const char *schema, const char *table, const char *column,                                            \
    const char *_Nullable *_Nonnull collation, int *is_autoincrement)                                                  \
  R(sqlite3_backup *_Nullable, backup_init, "_:_:_:_:", (target, target_schema, source, source_schema),                \
    sqlite3 *target, const char *target_schema, sqlite3 *source, const char *source_schema)                            \
  R(int, backup_step, "_:_:", (backup, pages), sqlite3_backup *backup, int pages)                                      \
  R(int, backup_finish, "_:", (backup), sqlite3_backup *backup)                                                        \
  /* Collations and functions */                                                                                       \
  R(int, collation_needed, "_:_:_:", (db, context, needed), sqlite3 *db, void *_Nullable context,                      \
    void (*needed)(void *_Nullable, sqlite3 *_Nullable, int, const char *_Nullable))                                   \
  R(int, create_collation_v2, "_:_:_:", (db, name, SQLITE_UTF8, 0, compare, 0), sqlite3 *db, const char *name,         \
    int (*_Nullable compare)(void *_Nullable, int, const void *_Nullable, int, const void *_Nullable))                    \
  R(int, create_function_v2, "_:_:_:_:_:_:_:", (db, name, count, flags, data, call, 0, 0, destroy),                    \
    sqlite3 *db, const char *name, int count, int flags, void *_Nullable data,                                         \
    void (*_Nullable call)(sqlite3_context *_Nullable, int, sqlite3_value *_Nullable *_Nullable),                      \
    void (*_Nullable destroy)(void *_Nullable))                                                                        \
  R(void *_Nullable, user_data, "_:", (context), sqlite3_context *context)                                             \
  R(void, result_null, "_:", (context), sqlite3_context *context)                                                      \
  R(void, result_int64, "_:_:", (context, value), sqlite3_context *context, sqlite3_int64 value)                       \
  R(void, result_double, "_:_:", (context, value), sqlite3_context *context, double value)                             \
  /* Without an address the result would be NULL instead of empty. */                                                  \
  R(void, result_text64, "_:_:_:", (context, bytes ? bytes : "", count, SQLITE_TRANSIENT, SQLITE_UTF8),                \
    sqlite3_context *context, const void *_Nullable bytes, sqlite3_uint64 count)                                       \
  R(void, result_blob64, "_:_:_:", (context, bytes ? bytes : "", count, SQLITE_TRANSIENT),                             \
    sqlite3_context *context, const void *_Nullable bytes, sqlite3_uint64 count)                                       \
  R(void, result_error, "_:_:", (context, message, -1), sqlite3_context *context, const char *message)                 \
  R(void, result_error_code, "_:_:", (context, code), sqlite3_context *context, int code)                              \
  R(int, value_type, "_:", (value), sqlite3_value *value)                                                              \
  R(sqlite3_int64, value_int64, "_:", (value), sqlite3_value *value)                                                   \
  R(double, value_double, "_:", (value), sqlite3_value *value)                                                         \
  R(const void *_Nullable, value_text, "_:", (value), sqlite3_value *value)                                            \
  R(const void *_Nullable, value_blob, "_:", (value), sqlite3_value *value)                                            \
  R(int, value_bytes, "_:", (value), sqlite3_value *value)                                                             \
  /* Virtual tables */                                                                                                 \
  R(int, create_module_v2, "_:_:_:_:_:", (db, name, methods, data, destroy), sqlite3 *db, const char *name,            \
    const sqlite3_module *methods, void *_Nullable data, void (*_Nullable destroy)(void *_Nullable))                   \
  R(int, declare_vtab, "_:_:", (db, sql), sqlite3 *db, const char *sql)                                                \
  R(int, vtab_config, "_:_:", (db, option), sqlite3 *db, int option)                                                   \
  /* Statements */                                                                                                     \
  R(int, prepare_v3, "_:_:_:_:", (db, sql, -1, flags, statement, 0),                                                   \
    sqlite3 *db, const char *sql, unsigned flags, sqlite3_stmt *_Nullable *_Nonnull statement)                         \
  R(int, finalize, "_:", (statement), sqlite3_stmt *statement)                                                         \
  R(int, step, "_:", (statement), sqlite3_stmt *statement)                                                             \
  R(int, reset, "_:", (statement), sqlite3_stmt *statement)                                                            \
  R(const char *_Nullable, sql, "_:", (statement), sqlite3_stmt *statement)                                            \
  R(int, clear_bindings, "_:", (statement), sqlite3_stmt *statement)                                                   \
  R(int, bind_parameter_count, "_:", (statement), sqlite3_stmt *statement)                                             \
  R(const char *_Nullable, bind_parameter_name, "_:_:", (statement, index), sqlite3_stmt *statement, int index)        \
  R(int, bind_null, "_:_:", (statement, index), sqlite3_stmt *statement, int index)                                    \
  R(int, bind_int64, "_:_:_:", (statement, index, value), sqlite3_stmt *statement, int index, sqlite3_int64 value)     \
  R(int, bind_double, "_:_:_:", (statement, index, value), sqlite3_stmt *statement, int index, double value)           \
  R(int, bind_text64, "_:_:_:_:copying:",                                                                              \
    (statement, index, bytes, count, is_copied ? SQLITE_TRANSIENT : SQLITE_STATIC, SQLITE_UTF8),                       \
    sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count, bool is_copied)                       \
  R(int, bind_blob64, "_:_:_:_:copying:",                                                                              \
    (statement, index, bytes, count, is_copied ? SQLITE_TRANSIENT : SQLITE_STATIC),                                    \
    sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count, bool is_copied)                       \
  R(int, bind_value, "_:_:_:", (statement, index, value),                                                              \
    sqlite3_stmt *statement, int index, sqlite3_value *_Nullable value)                                                \
  R(sqlite3_stmt *_Nullable, next_stmt, "_:_:", (db, statement), sqlite3 *db, sqlite3_stmt *_Nullable statement)       \
  R(int, stmt_busy, "_:", (statement), sqlite3_stmt *statement)                                                        \
  R(int, stmt_readonly, "_:", (statement), sqlite3_stmt *statement)                                                    \
  R(int, stmt_status, "_:_:_:", (statement, option, is_reset), sqlite3_stmt *statement, int option, bool is_reset)     \
  R(int, column_count, "_:", (statement), sqlite3_stmt *statement)                                                     \
  R(int, column_type, "_:_:", (statement, index), sqlite3_stmt *statement, int index)                                  \
  R(sqlite3_int64, column_int64, "_:_:", (statement, index), sqlite3_stmt *statement, int index)                       \
  R(double, column_double, "_:_:", (statement, index), sqlite3_stmt *statement, int index)                             \
  R(const void *_Nullable, column_text, "_:_:", (statement, index), sqlite3_stmt *statement, int index)                \
  R(const void *_Nullable, column_text16, "_:_:", (statement, index), sqlite3_stmt *statement, int index)              \
  R(const void *_Nullable, column_blob, "_:_:", (statement, index), sqlite3_stmt *statement, int index)                \
  R(int, column_bytes, "_:_:", (statement, index), sqlite3_stmt *statement, int index)                                 \
  R(int, column_bytes16, "_:_:", (statement, index), sqlite3_stmt *statement, int index)                               \
  R(sqlite3_value *_Nullable, column_value, "_:_:", (statement, index), sqlite3_stmt *statement, int index)

// Swift sees `routines.step(statement)`.
#define BUCKIA_WRAPPER(result, name, labels, arguments, ...)                                                           \
  __attribute__((swift_name("SQLiteRoutines." #name "(self:" labels ")")))                                             \
  static inline result buckia_##name(SQLiteRoutines routines __VA_OPT__(,) __VA_ARGS__) {                              \
    return routines.table->name arguments;                                                                             \
  }
BUCKIA_ROUTINES(BUCKIA_WRAPPER)
#undef BUCKIA_WRAPPER

// MARK: Virtual tables

/// A virtual table and its cursor, as SQLite passes them back: each begins with what belongs to SQLite.
typedef struct buckia_vtab {
  sqlite3_vtab base;
  void *_Nullable context;
} buckia_vtab;

typedef struct buckia_vtab_cursor {
  sqlite3_vtab_cursor base;
  void *_Nullable context;
} buckia_vtab_cursor;

// MARK: The session extension, which a copy of SQLite can lack

typedef struct sqlite3_session sqlite3_session;
typedef struct sqlite3_changeset_iter sqlite3_changeset_iter;
typedef struct sqlite3_rebaser sqlite3_rebaser;

// Result, name behind "sqlite3", Swift's argument labels, arguments, parameters.
#define BUCKIA_SESSION_ROUTINES(R)                                                                                     \
  R(int, session_create, "_:_:_:", (db, schema, session),                                                              \
    sqlite3 *db, const char *schema, sqlite3_session *_Nullable *_Nonnull session)                                     \
  R(void, session_delete, "_:", (session), sqlite3_session *session)                                                   \
  R(int, session_attach, "_:_:", (session, table), sqlite3_session *session, const char *_Nullable table)              \
  R(int, session_diff, "_:_:_:_:", (session, schema, table, message), sqlite3_session *session, const char *schema,    \
    const char *table, char *_Nullable *_Nullable message)                                                             \
  R(int, session_changeset_strm, "_:_:_:", (session, output, context), sqlite3_session *session,                       \
    int (*output)(void *_Nullable, const void *_Nullable, int), void *context)                                         \
  R(int, session_patchset_strm, "_:_:_:", (session, output, context), sqlite3_session *session,                        \
    int (*output)(void *_Nullable, const void *_Nullable, int), void *context)                                         \
  R(int, changeset_invert, "_:_:_:_:", (count, bytes, inverse_count, inverse),                                         \
    int count, const void *_Nullable bytes, int *inverse_count, void *_Nullable *_Nonnull inverse)                     \
  R(int, changeset_concat, "_:_:_:_:_:_:", (first_count, first, second_count, second, count, bytes),                   \
    int first_count, void *_Nullable first, int second_count, void *_Nullable second, int *count,                      \
    void *_Nullable *_Nonnull bytes)                                                                                   \
  R(int, changeset_op, "_:_:_:_:_:", (iterator, table, columns, operation, is_indirect),                               \
    sqlite3_changeset_iter *iterator, const char *_Nullable *_Nonnull table, int *columns, int *operation,             \
    int *_Nullable is_indirect)                                                                                        \
  R(int, changeset_old, "_:_:_:", (iterator, column, value),                                                           \
    sqlite3_changeset_iter *iterator, int column, sqlite3_value *_Nullable *_Nonnull value)                            \
  R(int, changeset_new, "_:_:_:", (iterator, column, value),                                                           \
    sqlite3_changeset_iter *iterator, int column, sqlite3_value *_Nullable *_Nonnull value)                            \
  R(int, changeset_conflict, "_:_:_:", (iterator, column, value),                                                      \
    sqlite3_changeset_iter *iterator, int column, sqlite3_value *_Nullable *_Nonnull value)                            \
  R(int, changeset_fk_conflicts, "_:_:", (iterator, count), sqlite3_changeset_iter *iterator, int *count)              \
  R(int, changeset_apply_v2, "_:_:_:_:_:_:_:_:_:",                                                                     \
    (db, count, bytes, filter, conflict, context, rebase, rebase_count, flags),                                        \
    sqlite3 *db, int count, void *_Nullable bytes, int (*_Nullable filter)(void *_Nullable, const char *_Nullable),    \
    int (*conflict)(void *_Nullable, int, sqlite3_changeset_iter *_Nullable), void *_Nullable context,                 \
    void *_Nullable *_Nullable rebase, int *_Nullable rebase_count, int flags)                                         \
  R(int, rebaser_create, "_:", (rebaser), sqlite3_rebaser *_Nullable *_Nonnull rebaser)                                \
  R(int, rebaser_configure, "_:_:_:", (rebaser, count, bytes),                                                         \
    sqlite3_rebaser *rebaser, int count, const void *_Nullable bytes)                                                  \
  R(int, rebaser_rebase, "_:_:_:_:_:", (rebaser, count, bytes, rebased_count, rebased),                                \
    sqlite3_rebaser *rebaser, int count, const void *_Nullable bytes, int *rebased_count,                              \
    void *_Nullable *_Nonnull rebased)                                                                                 \
  R(void, rebaser_delete, "_:", (rebaser), sqlite3_rebaser *_Nullable rebaser)

/// The functions of the session extension.
#define BUCKIA_FIELD(result, name, labels, arguments, ...) result (*_Nullable name)(__VA_ARGS__);
typedef struct buckia_session_routines {
  BUCKIA_SESSION_ROUTINES(BUCKIA_FIELD)
} buckia_session_routines;
#undef BUCKIA_FIELD

/// The session extension of one copy of SQLite.
typedef struct BUCKIA_SENDABLE SQLiteSessionRoutines {
  const buckia_session_routines *table;
} SQLiteSessionRoutines;

#define BUCKIA_WRAPPER(result, name, labels, arguments, ...)                                                           \
  __attribute__((swift_name("SQLiteSessionRoutines." #name "(self:" labels ")")))                                      \
  static inline result buckia_##name(SQLiteSessionRoutines routines, __VA_ARGS__) {                                    \
    return routines.table->name arguments;                                                                             \
  }
BUCKIA_SESSION_ROUTINES(BUCKIA_WRAPPER)
#undef BUCKIA_WRAPPER

// MARK: The copies of SQLite in this process

/// How many copies of SQLite a process can use.
#define BUCKIA_LIBRARY_LIMIT 8

// What `buckia_add_library` returns instead of a number.
#define BUCKIA_TOO_OLD -1
#define BUCKIA_INCOMPLETE -2
#define BUCKIA_TOO_MANY -3
#define BUCKIA_OUT_OF_MEMORY -4
#define BUCKIA_OTHER_HOST -5

// Hidden: an app and an extension that it loads can both contain this code, and each has a list of its own.
#pragma GCC visibility push(hidden)

/// Finds the address of a function by its name, such as `sqlite3_step`.
typedef void *_Nullable (*buckia_resolver)(void *_Nullable context, const char *symbol);

/// Makes a copy of SQLite known, and gives it a number. A copy that is known already keeps the one it has.
///
/// With a table, `resolve` is asked for the session extension only, and may be null. Without one it is asked for everything.
/// `detail` is set to the version of a library that is too old, or to the function that is missing.
int buckia_add_library(
  const sqlite3_api_routines *_Nullable table, buckia_resolver _Nullable resolve, void *_Nullable context,
  const char *_Nullable *_Nonnull detail);

/// Makes the copy of an extension's host known: as number 0, so that it is used wherever nothing else is said, in place of
/// a library that is linked.
///
/// Returns 0, or why that is not possible: `BUCKIA_OTHER_HOST` where another copy has loaded the extension before.
int buckia_add_host(const sqlite3_api_routines *table, const char *_Nullable *_Nonnull detail);

/// True if a copy has this number. Number 0 is the linked library; in a build that links none, the first one added.
bool buckia_has_library(int number);

/// The functions of a copy that is known.
SQLiteRoutines buckia_routines(int number);

/// The session extension of a copy that is known; `buckia_missing_session_routine` says if it is complete.
SQLiteSessionRoutines buckia_session_routines_of(int number);

/// The first function of the session extension that a copy lacks; null when it has all of them.
const char *_Nullable buckia_missing_session_routine(SQLiteSessionRoutines routines);

#pragma GCC visibility pop
#pragma clang assume_nonnull end

#endif
