/* The file with the second copy of term and vote. */
#include "raft/shield/vote.h"
#include "id/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <string.h>
#include <unistd.h>

enum {
    PLAIN = 24,
    BYTES = PLAIN + 8
}; /* "firnvote", term, candidate; the first 8 bytes of a SHA-256 */

static void encode(const struct vote *v, unsigned char out[BYTES])
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    memcpy(out, "firnvote", 8);
    store_be64(out + 8, v->term);
    store_be64(out + 16, v->candidate);
    SHA256(out, PLAIN, sum);
    memcpy(out + PLAIN, sum, BYTES - PLAIN);
}

int vote_read(const char *path, struct vote *out)
{
    unsigned char found[BYTES], expected[BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? FIRN_ENOENT : FIRN_EIO;
    ssize_t n = read(fd, found, sizeof found);
    close(fd);
    if (n < 0)
        return FIRN_EIO;
    if (n == 0) /* a crash before the first vote was written */
        return FIRN_ENOENT;
    struct vote v = { load_be64(found + 8), load_be64(found + 16) };
    encode(&v, expected);
    if (n != sizeof found || memcmp(found, expected, sizeof found) != 0)
        return FIRN_EFORMAT;
    *out = v;
    return 0;
}

/* In place: it is smaller than a sector, which a disk writes atomically. */
int vote_write(const char *path, const struct vote *v)
{
    unsigned char bytes[BYTES];
    encode(v, bytes);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0)
        return FIRN_EIO;
    bool ok = pwrite(fd, bytes, sizeof bytes, 0) == sizeof bytes && fdatasync(fd) == 0;
    close(fd);
    return ok ? 0 : FIRN_EIO;
}

bool vote_follows(const struct vote *ours, const struct vote *rafts)
{
    if (rafts->term != ours->term)
        return rafts->term > ours->term;
    return ours->candidate == 0 || ours->candidate == rafts->candidate;
}
