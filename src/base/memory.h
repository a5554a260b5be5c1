/* Memory for the tool, and what happens when there is none.
 *
 * The policy, for all code of the tool (the library in the target never allocates):
 *
 *   1. Code of the tool allocates with the functions below. They never return NULL. When memory is short they
 *      call memory_is_short(), which ends the command: the file that is being written is removed, the
 *      terminal is restored, "out of memory" is printed, and the command exits with the status that
 *      memory_short_ends_with() has set. No caller has a path for lack of memory.
 *   2. The exception are sizes that a file claims and nothing bounds by what the file really holds: one
 *      damaged or hostile file must not end a command that could still show the others. There
 *      memory_try_allocate() returns NULL, and the caller reports a problem about that file.
 *   3. Libraries allocate by themselves. Those that would crash for lack of memory end the command in the way
 *      of 1 (library_memory.c). What a library reports as lack of memory is passed to memory_is_short().
 *
 * memory_is_short() may be called from any thread, but not from a signal handler. */
#ifndef MALLOSCOPE_BASE_MEMORY_H
#define MALLOSCOPE_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Zeroed memory. A size of 0 is permitted. Freed by free(), as all of these are. */
void *memory_allocate(size_t size);
void *memory_allocate_array(size_t count, size_t size);
/* Moves a block to one of another size; NULL makes a new block. What is added is not zeroed. */
void *memory_reallocate(void *block, size_t size);
void *memory_reallocate_array(void *block, size_t count, size_t size);

void *memory_copy(const void *bytes, size_t size);
char *memory_copy_text(const char *text);
char *memory_copy_text_part(const char *text, size_t length); /* at most `length` bytes of it */
char *memory_format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *memory_format_arguments(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* A stream that writes into memory. `*text` and `*size` are valid after memory_stream_close. */
FILE *memory_stream_open(char **text, size_t *size);
void memory_stream_close(FILE *stream);

void memory_set_variable(const char *name, const char *value); /* of the environment */

/* For a size that a file claims: NULL if there is not that much memory. Zeroed. */
void *memory_try_allocate(size_t size);

/* Ends the command as described above. */
_Noreturn void memory_is_short(void);

/* The status that the command ends with then (PROBLEM_FAILURE otherwise), and what is called before the
 * message is printed, for instance to restore the terminal. */
void memory_short_ends_with(int status);
void memory_short_restores(void (*restore)(void));

/* Has large arrays grow by moving their pages instead of copying their contents. */
void memory_move_large_blocks(void);

/* `memory_free_text` as a cleanup attribute: `cleanup_text char *name = ...`. */
void memory_free_text(char **text);
#define cleanup_text __attribute__((cleanup(memory_free_text)))

#endif
