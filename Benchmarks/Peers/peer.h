/* What the programs in C have in common: each makes the calls that it is asked for and prints how many seconds each
 * took.
 *
 *   PROGRAM diff OLDER NEWER HOME OUTPUT...    writes what turns one database into the other into each of the files
 *   PROGRAM apply FILE HOME DATABASE...        applies a diff file to each of the databases
 *
 * Only the calls themselves are timed, not the start of the program. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*diff_call)(const char *older, const char *newer, const char *home, const char *output);
typedef void (*apply_call)(const char *file, const char *home, const char *database);

static inline void fail(const char *what, const char *reason) {
  fprintf(stderr, "%s: %s\n", what, reason ? reason : "no reason was given");
  exit(1);
}

static inline double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Makes the calls of a command line that begins with the verb. */
static inline void make_calls(int count, char **arguments, diff_call diff, apply_call apply) {
  const char *verb = count > 0 ? arguments[0] : "";
  int fixed = strcmp(verb, "diff") == 0 ? 4 : strcmp(verb, "apply") == 0 ? 3 : 0;
  if (!fixed || count <= fixed) fail("usage", "diff OLDER NEWER HOME OUTPUT... or apply FILE HOME DATABASE...");
  for (int index = fixed; index < count; index++) {
    double began = seconds_now();
    if (fixed == 4) {
      diff(arguments[1], arguments[2], arguments[3], arguments[index]);
    } else {
      apply(arguments[1], arguments[2], arguments[index]);
    }
    printf("%.9f\n", seconds_now() - began);
  }
}
