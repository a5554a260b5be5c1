/* Memory for the command, which ends with a message when there is none. */
#ifndef MALLOSCOPE_BASE_MEMORY_H
#define MALLOSCOPE_BASE_MEMORY_H

#include <stddef.h>

void *memory_allocate(size_t size);                 /* zeroed */
void *memory_reallocate(void *memory, size_t size); /* grows or makes */
char *memory_copy_text(const char *text);
void memory_set_variable(const char *name, const char *value); /* of the environment */
_Noreturn void memory_is_short(void);                          /* ends the command */

/* How the command ends then, where that is not as usual: with another status; and after `restore`, for
 * instance of the terminal, so that the message can be seen. */
void memory_short_ends_with(int status);
void memory_short_restores(void (*restore)(void));

/* Large arrays grow by moving their pages, not by copying what is in them. */
void memory_move_large_blocks(void);

char *memory_format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `memory_free_text` as a cleanup attribute: `cleanup_text char *name = ...`. */
void memory_free_text(char **text);
#define cleanup_text __attribute__((cleanup(memory_free_text)))

#endif
