#include "CTestSupport.h"

#ifdef BUCKIA_LINKS_SQLITE
#include <sqlite3.h>
#endif

void test_support_stop_counting_memory(void) {
#ifdef BUCKIA_LINKS_SQLITE
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
#endif
}
