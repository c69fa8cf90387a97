// SQLite's C API with the session extension, as SQLiteConnections sees it.
//
// Debian's sqlite3.h hides the session API unless both macros are defined before the include. Apple's
// SDK ships the symbols but no prototypes, so those that are used are declared below.

#ifndef BUCKIA_SQLITE_SHIM_H
#define BUCKIA_SQLITE_SHIM_H

#ifndef SQLITE_ENABLE_SESSION
#define SQLITE_ENABLE_SESSION 1
#endif
#ifndef SQLITE_ENABLE_PREUPDATE_HOOK
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#endif
#include <sqlite3.h>

#if defined(__APPLE__) && !defined(__SQLITESESSION_H_)
typedef struct sqlite3_session sqlite3_session;
typedef struct sqlite3_changeset_iter sqlite3_changeset_iter;

#define SQLITE_CHANGESET_ABORT 2

int sqlite3session_create(sqlite3 *db, const char *zDb, sqlite3_session **ppSession);
void sqlite3session_delete(sqlite3_session *pSession);
int sqlite3session_attach(sqlite3_session *pSession, const char *zTab);
int sqlite3session_diff(sqlite3_session *pSession, const char *zFromDb, const char *zTbl, char **pzErrMsg);
int sqlite3session_changeset_strm(
  sqlite3_session *pSession, int (*xOutput)(void *pOut, const void *pData, int nData), void *pOut);
int sqlite3session_patchset_strm(
  sqlite3_session *pSession, int (*xOutput)(void *pOut, const void *pData, int nData), void *pOut);
int sqlite3changeset_invert(int nIn, const void *pIn, int *pnOut, void **ppOut);
int sqlite3changeset_concat(int nA, void *pA, int nB, void *pB, int *pnOut, void **ppOut);
int sqlite3changeset_op(
  sqlite3_changeset_iter *pIter, const char **pzTab, int *pnCol, int *pOp, int *pbIndirect);
int sqlite3changeset_old(sqlite3_changeset_iter *pIter, int iVal, sqlite3_value **ppValue);
int sqlite3changeset_new(sqlite3_changeset_iter *pIter, int iVal, sqlite3_value **ppValue);
int sqlite3changeset_conflict(sqlite3_changeset_iter *pIter, int iVal, sqlite3_value **ppValue);
int sqlite3changeset_fk_conflicts(sqlite3_changeset_iter *pIter, int *pnOut);
int sqlite3changeset_apply_v2(
  sqlite3 *db, int nChangeset, void *pChangeset, int (*xFilter)(void *pCtx, const char *zTab),
  int (*xConflict)(void *pCtx, int eConflict, sqlite3_changeset_iter *p), void *pCtx,
  void **ppRebase, int *pnRebase, int flags);
#endif

// Swift cannot call variadic C functions; this is the form of sqlite3_db_config that is used.
static inline int buckia_db_config_flag(sqlite3 *db, int op, int value, int *result) {
  return sqlite3_db_config(db, op, value, result);
}

// SQLITE_TRANSIENT is a cast of -1 to a function pointer, which Swift does not import.
static inline int buckia_bind_text_copy(sqlite3_stmt *statement, int index, const char *bytes, sqlite3_uint64 count) {
  return sqlite3_bind_text64(statement, index, bytes, count, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline int buckia_bind_blob_copy(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
  return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_TRANSIENT);
}

#endif
