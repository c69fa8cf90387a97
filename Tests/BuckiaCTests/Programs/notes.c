#include <buckia.h>
#include <inttypes.h>
#include <stdio.h>

/* Applies what others have sent: notes DATABASE INBOUND */
int main(int count, char **arguments) {
  if (count < 3) return 2;
  const char *inbound = arguments[2];
  buckia_database *database = NULL;
  buckia_error *error = NULL;
  buckia_counts counts = { .size = sizeof counts };
  buckia_status status = buckia_open(arguments[1], &database, &error);
  if (status == BUCKIA_OK) status = buckia_apply(database, &inbound, 1, NULL, &counts, NULL, &error);
  if (status == BUCKIA_OK) {
    printf("%" PRId64 " files applied, %" PRId64 " conflicts\n", counts.applied, counts.conflicts);
  } else {
    fprintf(stderr, "%s (%s)\n", buckia_error_message(error), buckia_error_code(error));
    buckia_error_free(error);
  }
  buckia_close(database);
  return status == BUCKIA_OK ? 0 : 1;
}
