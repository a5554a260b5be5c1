#include "format/gzip.h"

#include "base/memory.h"

#include <limits.h>
#include <zlib.h>

static const int gzip_window =
    15 + 16; /* zlib: 15 is the largest window, + 16 asks for gzip's header and trailer */

void gzip_write(FILE *out, const void *bytes, size_t size) {
    unsigned char buffer[16384];
    z_stream stream = {.next_in = (unsigned char *)bytes};
    int state = Z_OK;

    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        memory_is_short();
    while (state != Z_STREAM_END) {
        if (stream.avail_in == 0) { /* zlib counts in unsigned ints */
            stream.avail_in = size < UINT_MAX ? (unsigned)size : UINT_MAX;
            size -= stream.avail_in;
        }
        stream.next_out = buffer;
        stream.avail_out = sizeof buffer;
        state = deflate(&stream, size == 0 ? Z_FINISH : Z_NO_FLUSH);
        // cppcheck-suppress uninitvar ; deflate fills it
        fwrite(buffer, 1, sizeof buffer - stream.avail_out, out);
    }
    deflateEnd(&stream);
}
