/*
 * merkle.h - Merkle trees of SHA-256 in the shape of RFC 6962, section 2.1: a node is the digest of
 * 01 and its two children, a level with an odd number passes its last node up. Leaves are digests,
 * too, made over 00 and something, so no leaf can stand for a node. Pure but for the hasher.
 */
#ifndef FIRN_AUDITLOG_MERKLE_H
#define FIRN_AUDITLOG_MERKLE_H

#include "auditlog/sha256.h"

enum { MERKLE_LEAF = 0, MERKLE_NODE = 1, MERKLE_PATH_MAX = 32 };

typedef uint8_t digest_t[SHA256_BYTES];

/* The root of n leaves, 1 to 2^32. They are overwritten. */
void merkle_root(struct sha256 *h, digest_t *leaves, size_t n, digest_t out);

/* The siblings on the way from leaf `at` up, for merkle_climb(); returns how many, at most
 * MERKLE_PATH_MAX. The leaves are overwritten. */
size_t merkle_path(struct sha256 *h, digest_t *leaves, size_t n, size_t at,
                   digest_t path[MERKLE_PATH_MAX]);

/* The root that leaf `at` of n and the path lead to. FIRN_EFORMAT: the path has not the length that
 * it must have. */
FIRN_MUSTUSE int merkle_climb(struct sha256 *h, const digest_t leaf, uint64_t at, uint64_t n,
                              const digest_t *path, size_t path_n, digest_t out);

#endif
