/* crc32c.h - CRC-32C (Castagnoli), the checksum of the log and of snapshots. Any thread. */
#ifndef FIRN_RAFT_CRC32C_H
#define FIRN_RAFT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 at the beginning) over `len` bytes. */
uint32_t crc32c(uint32_t crc, const void *p, size_t len);

/* The same without the processor's instruction: for the test. */
uint32_t crc32c_by_table(uint32_t crc, const void *p, size_t len);

#endif
