#include "CTestSupport.h"

#ifdef BUCKIA_LINKS_SQLITE
#include <sqlite3.h>

/* SQLite counts the memory that it has under a mutex, for which tests that run side by side would wait a third of their time. It can be told
 * not to before its first use only, so it is told when the tests are loaded: https://sqlite.org/c3ref/c_config_covering_index_scan.html#sqliteconfigmemstatus */
__attribute__((constructor)) static void stop_counting_memory(void) { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
#endif
