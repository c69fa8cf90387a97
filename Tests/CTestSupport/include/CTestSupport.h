/* What happens when tests are loaded; see memory.c. There is nothing to call. */
