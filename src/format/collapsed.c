/* Collapsed stacks: one line `root;…;leaf VALUE` for each stack. Equal lines are merged, and lines of value 0 left
 * out. The last line is a comment. */
#include "base/memory.h"
#include "format/intern_table.h"
#include "format/utf8.h"
#include "format/writers.h"
#include "view/source_frames.h"

#include <math.h>
#include <stdlib.h>

/* Writes a name without semicolons and control characters: these would begin a new frame or a new line. */
static void print_name(FILE *out, const char *name) {
    while (*name) {
        size_t length = utf8_length(name);
        if (length == 0) {
            fputs(UTF8_REPLACEMENT, out);
        } else if (*name == ';') {
            fputc(':', out);
        } else if (utf8_control_length(name)) {
            fputc(' ', out);
        } else {
            fwrite(name, 1, length, out);
        }
        name += length ? length : 1;
    }
}

/* Makes the line of a stack, without its value. The caller frees `*text`. */
static void make_line(const struct source_frames *frames, char **text, size_t *size) {
    FILE *line = memory_stream_open(text, size);
    for (size_t i = frames->count; i-- > 0;) {
        print_name(line, frames->frames[i].symbol->function);
        if (i > 0) fputc(';', line);
    }
    memory_stream_close(line);
}

int collapsed_write(const struct format_input *input, FILE *out, struct problem *problem) {
    (void)problem;
    const struct model *model = input->model;
    struct source_frames frames = {0};
    struct intern_table lines = {0};
    double *values = memory_allocate_array(
        model->stack_count + 1, sizeof *values); /* by line; there are at most as many lines as stacks */

    for (size_t i = 0; i < model->stack_count; i++) {
        double value = format_value_of(&model->stacks[i].figures, input->value);
        char *text = NULL;
        size_t size;
        if (value == 0) continue;
        source_frames_expand_labelled(&frames, model, input->resolver, &model->stacks[i]);
        make_line(&frames, &text, &size);
        values[intern_table_add(&lines, text, size)] += value;
        free(text);
    }

    for (uint32_t i = 0; i < lines.count; i++)
        if (values[i] >= 0.5) fprintf(out, "%s %lld\n", lines.entries[i].key, llround(values[i]));

    /* No reader takes this for a stack, because a number does not end it. */
    fprintf(out, "# bytes that the recorder takes itself: %llu, in none of the stacks\n",
        (unsigned long long)model->totals.recorder_bytes);

    free(values);
    intern_table_free(&lines);
    source_frames_free(&frames);
    return 0;
}
