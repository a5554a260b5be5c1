/* The file that the command is writing, which goes if the command ends before it is whole: libraries end it
 * where there is no memory. One at a time. */
#ifndef MALLOSCOPE_BASE_UNFINISHED_FILE_H
#define MALLOSCOPE_BASE_UNFINISHED_FILE_H

/* `path` stays the caller's, and has to last until unfinished_file_end. */
void unfinished_file_begin(const char *path);
void unfinished_file_end(void);

#endif
