// Zstandard's stable C API, as BuckiaFormat and BuckiaLedger see it.
#ifndef BUCKIA_ZSTD_SHIM_H
#define BUCKIA_ZSTD_SHIM_H
#include <zstd.h>
#include <zstd_errors.h>
#endif
