/* Compressed parts of files: written and read as streams, with a checksum (zstd). */
#ifndef MALLOSCOPE_BASE_PACKER_H
#define MALLOSCOPE_BASE_PACKER_H

#include <stddef.h>
#include <stdint.h>

struct packer;

/* For what is kept and sent, or for what is made in passing. */
enum packing { PACKED_SMALL, PACKED_FAST };

/* Writes at the descriptor's position. */
struct packer *packer_new(int descriptor, enum packing packing);

/* Return 0 or a negative errno; after a failure every call fails. */
int packer_write(struct packer *packer, const void *bytes, size_t size);
/* Ends the part and frees the packer. */
int packer_end(struct packer *packer, uint64_t *ret_packed_size);

struct unpacker;

/* Reads the part of `packed_size` bytes at `offset`. */
struct unpacker *unpacker_new(int descriptor, uint64_t offset, uint64_t packed_size);

/* Reads exactly `size` bytes. Returns 0 or a negative errno: -EBADMSG if they are damaged or not there. */
int unpacker_read(struct unpacker *unpacker, void *bytes, size_t size);
/* Frees the unpacker. Returns -EBADMSG if anything is left, or the checksum does not fit. */
int unpacker_end(struct unpacker *unpacker);

/* Whether a part can hold that much: what claims to grow beyond this was not made by a packer from data that
 * is worth it, and would only take the reader's memory. */
#define PACKED_GROWTH_MAX 4096u

#endif
