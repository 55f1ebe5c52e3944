/*
 * Known answers of the hashes, as `openssl dgst` gives them. The last row of each hash stands for
 * all lengths from 0 to 300, and so for every way a message can end in a block: it is the hash of
 * those 301 hashes joined, where byte i of each message is 7 * i mod 256.
 */
#include "t.h"

#include "id/md5.h"
#include "id/sha1.h"
#include "id/sha3.h"

#include <stdio.h>

typedef void hash_fn(const void *a, size_t a_len, const void *b, size_t b_len, uint8_t *out);

enum { LENGTHS = 301, DIGEST_MAX = 64 };

static const struct hash {
    const char *name;
    hash_fn *fn;
    size_t bytes;
    const char *empty, *abc, *two, *fox, *lengths;
} hashes[] = {
    { "md5", firn__md5, FIRN__MD5_BYTES, "d41d8cd98f00b204e9800998ecf8427e",
      "900150983cd24fb0d6963f7d28e17f72", "8215ef0796a20bcaaae116d3876c664a",
      "9e107d9d372bb6826bd81d3542a419d6", "e4702992a25b0586df095abeb5e4dc89" },
    { "sha1", firn__sha1, FIRN__SHA1_BYTES, "da39a3ee5e6b4b0d3255bfef95601890afd80709",
      "a9993e364706816aba3e25717850c26c9cd0d89d", "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
      "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12", "2d095daa1437f7f4f361cd003710e0b4d4d9af37" },
    { "sha3-512", firn__sha3_512, FIRN__SHA3_512_BYTES,
      "a69f73cca23a9ac5c8b567dc185a756e97c982164fe25859e0d1dcc1475c80a6"
      "15b2123af1f5f94c11e3e9402c3ac558f500199d95b6d3e301758586281dcd26",
      "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e"
      "10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
      "04a371e84ecfb5b8b77cb48610fca8182dd457ce6f326a0fd3d7ec2f1e91636d"
      "ee691fbe0c985302ba1b0d8dc78c086346b533b49c030d99a27daf1139d6e75e",
      "01dedd5de4ef14642445ba5f5b97c15e47b9ad931326e4b0727cd94cefc44fff"
      "23f07bf543139939b49128caf436dc1bdee54fcb24023a08d9403f9b4bf0d450",
      "34c96b04d30320299f7082c3b54d80c4bff9b2ef2642afc1326906840d0fb6f5"
      "2dbe440244d6453b650135b45159697f1cc1f6e01ac99f22dbca55cd7d417082" },
};

/* Wherever the message is cut in two, the hash is the same. */
static void check(const struct hash *h, const void *message, size_t len, const char *expect)
{
    for (size_t cut = 0; cut <= len; cut += len > 1000 ? 997 : 1) {
        uint8_t digest[DIGEST_MAX];
        char text[2 * DIGEST_MAX + 1] = "";
        h->fn(message, cut, (const char *)message + cut, len - cut, digest);
        for (size_t i = 0; i < h->bytes; i++)
            snprintf(text + 2 * i, 3, "%02x", digest[i]);
        T_STR(text, expect, "%s of %zu bytes cut at %zu", h->name, len, cut);
    }
}

T_TEST(hash_known_answers)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static const char fox[] = "The quick brown fox jumps over the lazy dog";
    for (size_t i = 0; i < T_LEN(hashes); i++) {
        check(&hashes[i], "", 0, hashes[i].empty);
        check(&hashes[i], "abc", 3, hashes[i].abc);
        check(&hashes[i], two, strlen(two), hashes[i].two);
        check(&hashes[i], fox, strlen(fox), hashes[i].fox);
    }
}

T_TEST(hash_takes_null_for_nothing)
{
    for (size_t i = 0; i < T_LEN(hashes); i++) {
        uint8_t a[DIGEST_MAX], b[DIGEST_MAX];
        hashes[i].fn(NULL, 0, NULL, 0, a);
        hashes[i].fn("", 0, "", 0, b);
        T_OK(memcmp(a, b, hashes[i].bytes) == 0, "%s", hashes[i].name);
    }
}

T_TEST(hash_every_length)
{
    static uint8_t message[LENGTHS], joined[LENGTHS * DIGEST_MAX];
    for (size_t i = 0; i < LENGTHS; i++)
        message[i] = (uint8_t)(7 * i);
    for (size_t i = 0; i < T_LEN(hashes); i++) {
        for (size_t len = 0; len < LENGTHS; len++)
            hashes[i].fn(message, len, NULL, 0, joined + len * hashes[i].bytes);
        check(&hashes[i], joined, LENGTHS * hashes[i].bytes, hashes[i].lengths);
    }
}
