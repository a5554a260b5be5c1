/* Memory for the command, which ends with a message when there is none. */
#ifndef MALLOSCOPE_CLI_MEMORY_H
#define MALLOSCOPE_CLI_MEMORY_H

#include <stddef.h>

void *allocate(size_t size);                 /* zeroed */
void *reallocate(void *memory, size_t size); /* grows or makes */
char *copy_text(const char *text);
_Noreturn void memory_is_short(void); /* ends the command */
char *format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `free_text` as a cleanup attribute: `cleanup_text char *name = ...`. */
void free_text(char **text);
#define cleanup_text __attribute__((cleanup(free_text)))

#endif
