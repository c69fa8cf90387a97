#ifndef BUCKIA_TEST_SUPPORT_H
#define BUCKIA_TEST_SUPPORT_H

/// Tells SQLite not to count the memory it uses. It counts under one mutex for the whole process, for which tests that run
/// side by side wait a third of their time (https://sqlite.org/c3ref/c_config_covering_index_scan.html#sqliteconfigmemstatus).
/// Does nothing once SQLite is in use. Swift cannot call sqlite3_config, whose parameters vary.
void test_support_stop_counting_memory(void);

#endif
