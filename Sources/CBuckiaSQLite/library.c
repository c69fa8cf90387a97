#include "CBuckiaSQLite.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef struct library {
  const sqlite3_api_routines *table;
  buckia_session_routines sessions;
} library;

#ifdef BUCKIA_LINKS_SQLITE

// A library without the session extension can be linked, too.
#ifdef __APPLE__
#define WEAK __attribute__((weak_import))
#else
#define WEAK __attribute__((weak))
#endif
#define R(result, name, labels, arguments, ...) extern result sqlite3##name(__VA_ARGS__) WEAK;
BUCKIA_SESSION_ROUTINES(R)
#undef R

static const sqlite3_api_routines linked_table = {
#define R(result, name, ...) .name = sqlite3_##name,
  BUCKIA_ROUTINES(R)
#undef R
#ifndef __APPLE__
  // Optional: Apple's copy does not have it.
  .load_extension = sqlite3_load_extension,
#endif
};

static const library linked = {
  &linked_table,
  {
#define R(result, name, ...) .name = sqlite3##name,
    BUCKIA_SESSION_ROUTINES(R)
#undef R
  }
};

#define LINKED &linked
static _Atomic(const library *) libraries[BUCKIA_LIBRARY_LIMIT] = { LINKED };

#else

#define LINKED NULL
static _Atomic(const library *) libraries[BUCKIA_LIBRARY_LIMIT];

#endif

bool buckia_has_library(int number) {
  return number >= 0 && number < BUCKIA_LIBRARY_LIMIT && atomic_load(&libraries[number]);
}

SQLiteRoutines buckia_routines(int number) {
  return (SQLiteRoutines){ atomic_load(&libraries[number])->table };
}

SQLiteSessionRoutines buckia_session_routines_of(int number) {
  return (SQLiteSessionRoutines){ &atomic_load(&libraries[number])->sessions };
}

const char *buckia_missing_session_routine(SQLiteSessionRoutines routines) {
#define R(result, name, ...) if (!routines.table->name) return "sqlite3" #name;
  BUCKIA_SESSION_ROUTINES(R)
#undef R
  return NULL;
}

// The first function that is missing. Of an older library only the version may be read.
static const char *missing_routine(const sqlite3_api_routines *table) {
#define R(result, name, ...) if (!table->name) return "sqlite3_" #name;
  BUCKIA_ROUTINES(R)
#undef R
  return NULL;
}

static const sqlite3_api_routines *resolved_table(buckia_resolver resolve, void *context) {
  sqlite3_api_routines *table = calloc(1, sizeof *table);
  if (!table) return NULL;
#define R(result, name, ...) table->name = (__typeof__(table->name))resolve(context, "sqlite3_" #name);
  BUCKIA_ROUTINES(R)
#undef R
  return table;
}

static bool has_sessions(const library *library) {
  return !buckia_missing_session_routine((SQLiteSessionRoutines){ &library->sessions });
}

// The number of a library; `is_kept` is true if this description of it is used now.
static int number_of(const library *added, bool *is_kept) {
  for (int number = 0; number < BUCKIA_LIBRARY_LIMIT; number++) {
    const library *known = NULL;
    *is_kept = atomic_compare_exchange_strong(&libraries[number], &known, added);
    if (*is_kept) return number;
    // The version is an array of its own in each copy, even where two copies are of the same version.
    if (known->table->libversion() != added->table->libversion()) continue;
    // What is replaced stays in memory, because somebody may be using it.
    if (has_sessions(added) && !has_sessions(known))
      *is_kept = atomic_compare_exchange_strong(&libraries[number], &known, added);
    return number;
  }
  return BUCKIA_TOO_MANY;
}

// Fills in everything but a table that is given.
static int describe(library *added, buckia_resolver resolve, void *context, const char **detail) {
  if (!added->table) added->table = resolved_table(resolve, context);
  if (!added->table) return BUCKIA_OUT_OF_MEMORY;
  const sqlite3_api_routines *table = added->table;
  if (table->libversion && table->libversion_number && table->libversion_number() < BUCKIA_OLDEST_SQLITE) {
    *detail = table->libversion();
    return BUCKIA_TOO_OLD;
  }
  *detail = missing_routine(table);
  if (*detail) return BUCKIA_INCOMPLETE;
  if (!resolve) return 0;
#define R(result, name, ...) \
  added->sessions.name = (__typeof__(added->sessions.name))resolve(context, "sqlite3" #name);
  BUCKIA_SESSION_ROUTINES(R)
#undef R
  return 0;
}

int buckia_add_library(
    const sqlite3_api_routines *table, buckia_resolver resolve, void *context, const char **detail) {
  library *added = calloc(1, sizeof *added);
  if (!added) return BUCKIA_OUT_OF_MEMORY;
  added->table = table;
  bool is_kept = false;
  int number = describe(added, resolve, context, detail);
  if (number == 0) number = number_of(added, &is_kept);
  if (!is_kept) {
    if (!table) free((void *)added->table);
    free(added);
  }
  return number;
}

int buckia_add_host(const sqlite3_api_routines *table, const char **detail) {
  library *added = calloc(1, sizeof *added);
  if (!added) return BUCKIA_OUT_OF_MEMORY;
  added->table = table;
  int result = describe(added, NULL, NULL, detail);
  if (result == 0) {
    const library *known = LINKED;
    bool is_linked = known && known->table->libversion() == table->libversion();
    if (!is_linked && atomic_compare_exchange_strong(&libraries[0], &known, added)) return 0;
    // Number 0 is the linked library, which the host uses, too, or has been taken before.
    if (atomic_load(&libraries[0])->table->libversion() != table->libversion()) result = BUCKIA_OTHER_HOST;
  }
  free(added);
  return result;
}
