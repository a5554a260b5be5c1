/* Writes the page: web/ as it is, with the data in its middle as JSON, gzipped, in base 64. Nothing of a recording
 * is ever read as HTML, since no character of base 64 means anything there. */
#include "base/memory.h"
#include "format/gzip.h"
#include "format/page_data.h"
#include "format/page_diff.h"
#include "format/page_template.h"
#include "format/writers.h"

#include <stdlib.h>

static void write_base64(FILE *out, const unsigned char *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char line[4 * 4096];
    for (size_t at = 0; at < size;) {
        size_t length = 0;
        for (; at < size && length < sizeof line; at += 3) {
            size_t left = size - at;
            uint32_t three = (uint32_t)bytes[at] << 16 | (left > 1 ? (uint32_t)bytes[at + 1] << 8 : 0) |
                             (left > 2 ? bytes[at + 2] : 0);
            line[length++] = digits[three >> 18];
            line[length++] = digits[three >> 12 & 63];
            line[length++] = left > 1 ? digits[three >> 6 & 63] : '=';
            line[length++] = left > 2 ? digits[three & 63] : '=';
        }
        // cppcheck-suppress uninitvar ; the loop before fills `length` of it
        fwrite(line, 1, length, out);
    }
}

static void pack(const char *json, size_t size, char **ret_bytes, size_t *ret_size) {
    FILE *memory = memory_stream_open(ret_bytes, ret_size);
    gzip_write(memory, json, size);
    memory_stream_close(memory);
}

int html_write(const struct format_input *input, FILE *out, struct problem *problem) {
    static const struct page_options defaults = {.nodes_max = PAGE_NODES, .no_source = true};
    char *json = NULL, *packed = NULL;
    size_t json_size = 0, packed_size = 0;
    FILE *memory = memory_stream_open(&json, &json_size);
    const struct page_options *options = input->page ? input->page : &defaults;
    int r = options->comparison ? page_diff_write(options, memory, problem)
                                : page_data_write(input, options, memory, problem);
    memory_stream_close(memory);
    if (r == 0) {
        pack(json, json_size, &packed, &packed_size);
        fwrite(page_before_data, 1, page_before_data_size, out);
        write_base64(out, (const unsigned char *)packed, packed_size);
        fwrite(page_after_data, 1, page_after_data_size, out);
    }
    free(json);
    free(packed);
    return r;
}
