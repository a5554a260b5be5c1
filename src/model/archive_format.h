/* The records of an archive. archive.h has the picture. */
#ifndef MALLOSCOPE_MODEL_ARCHIVE_FORMAT_H
#define MALLOSCOPE_MODEL_ARCHIVE_FORMAT_H

#include <stdint.h>

#define ARCHIVE_MAGIC   "MSCARCH\n"
#define ARCHIVE_VERSION 1

struct archive_head {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
};

enum part_kind { PART_END = 0, PART_RECORDING = 1, PART_NAMES = 2 };

struct part_head {
    uint32_t kind;
    uint32_t reserved;
    uint64_t packed_size; /* how many bytes follow */
    uint64_t size;        /* how many bytes they unpack to */
};

/* A recording is this head, then the list of stretches, then the bytes of the stretches one after the other. */
struct recording_head {
    uint64_t size;
    uint64_t file_bytes, recorder_bytes; /* see struct model_process */
    uint64_t stretch_count;
};

/* A run of pages of the recording that are not all zero. */
struct recording_stretch {
    uint64_t offset, length;
};

#endif
