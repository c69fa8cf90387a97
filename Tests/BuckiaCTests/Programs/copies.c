/* A program whose SQLite is another copy than the one that Buckia is linked with. */

#include <buckia.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECT(condition) \
  ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

struct sqlite3;
typedef int (*open_function)(const char *path, struct sqlite3 **handle);
typedef int (*execute_function)(struct sqlite3 *handle, const char *sql, void *row, void *context, char **message);
typedef int (*close_function)(struct sqlite3 *handle);
typedef int (*register_function)(void (*entry)(void));

/* The functions of a copy, which it passes to extensions. */
static const void *routines;

static int remember(struct sqlite3 *handle, char **message, const void *table) {
  (void)handle;
  (void)message;
  routines = table;
  return 0;
}

static void *find(void *context, const char *name) { return dlsym(context, name); }

static void copy(const char *from, const char *to) {
  FILE *source = fopen(from, "rb");
  FILE *target = fopen(to, "wb");
  EXPECT(source && target);
  char buffer[1 << 16];
  size_t count;
  while ((count = fread(buffer, 1, sizeof buffer, source)) > 0) EXPECT(fwrite(buffer, 1, count, target) == count);
  fclose(source);
  EXPECT(fclose(target) == 0);
}

int main(int count, char **arguments) {
  EXPECT(count == 2 && chdir(arguments[1]) == 0);
  /* The same file would not be loaded twice. With RTLD_DEEPBIND the copy calls its own functions. */
  Dl_info linked;
  EXPECT(dladdr(dlsym(RTLD_DEFAULT, "sqlite3_libversion"), &linked) != 0);
  copy(linked.dli_fname, "copy.so");
  void *library = dlopen("./copy.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  EXPECT(library);
  register_function register_entry = (register_function)dlsym(library, "sqlite3_auto_extension");
  EXPECT(register_entry && register_entry((void (*)(void))remember) == 0);
  struct sqlite3 *handle = NULL;
  EXPECT(((open_function)dlsym(library, "sqlite3_open"))("notes.db", &handle) == 0 && routines);
  execute_function execute = (execute_function)dlsym(library, "sqlite3_exec");
  EXPECT(execute(handle, "CREATE TABLE notes(id INTEGER PRIMARY KEY, title)", NULL, NULL, NULL) == 0);
  EXPECT(execute(handle, "INSERT INTO notes VALUES (1, 'Oak')", NULL, NULL, NULL) == 0);

  buckia_database *database = NULL;
  buckia_error *error = NULL;
  char *json = NULL;
  /* Taken for one of the linked copy, it is refused. */
  EXPECT(buckia_open_handle(handle, NULL, &database, &error) == BUCKIA_ERROR && database == NULL);
  EXPECT(strstr(buckia_error_message(error), "SQLite"));
  buckia_error_free(error);

  EXPECT(buckia_open_handle(handle, routines, &database, &error) == BUCKIA_OK);
  EXPECT(buckia_init(database, BUCKIA_TRUST_AS_IS, NULL, &error) == BUCKIA_OK);
  EXPECT(buckia_diff(database, NULL, "outbox", NULL, &json, &error) == BUCKIA_OK && strstr(json, "\"inserted\":1"));
  buckia_free(json);
  buckia_close(database);

  EXPECT(buckia_open_handle_finding(handle, find, library, &database, &error) == BUCKIA_OK);
  EXPECT(buckia_log(database, -1, &json, &error) == BUCKIA_OK && strstr(json, "\"entries\":[]"));
  buckia_free(json);
  buckia_close(database);
  EXPECT(((close_function)dlsym(library, "sqlite3_close"))(handle) == 0);
  puts("done");
  return 0;
}
