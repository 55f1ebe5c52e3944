/*
 * CUID2 beside its reference implementation, which was given these times, counters, salts and
 * letters.
 */
#include "t.h"

#include "firn/cuid2.h"
#include "id/base36.h"
#include "id/cuid2_hash.h"

static const char entropy[] = "2hetq52hetq52hetq52hetq52hetq52h";
static const char fingerprint[] = "jpvli6zjj5bzrhfwi4a3wzk35lhy1z4s";

T_TEST(cuid2_fingerprint_as_the_reference)
{
    char out[FIRN_CUID2_BUF_MAX] = "";
    firn__cuid2_fingerprint(NULL, 0, entropy, out);
    T_STR(out, fingerprint);
    firn__cuid2_fingerprint("4711,host-1", 11, entropy, out);
    T_STR(out, "rqkjfe7zeghb4ryc856b9p546iicf7wq");
}

T_TEST(cuid2_hash_as_the_reference)
{
    static const struct {
        struct cuid2_input in;
        const char *expect;
    } cases[] = {
        { { 0, 0, 'a', "g7", 2 }, "aj" },
        { { 1, 35, 'c', "orc", 3 }, "cmr" },
        { { UINT64_C(1645557742000), 0, 'q', "a1a1a1a1a1a1a1a1a1a1a1a1", 24 },
          "qtl9v4q4ir7cvbq1er434fr1" },
        { { UINT64_C(1645557742000), 476782366, 'z', "2hetq52hetq52hetq52hetq5", 24 },
          "z0o79tjyduad30c280zpj5s4" },
        { { UINT64_C(4102444800000), UINT64_C(9007199254740991), 'b', "mdmdmdmdmd", 10 },
          "bz8hfqyiyn" },
        { { UINT64_C(1700000000001), 36, 'y', "etq52hetq52hetq52hetq52hetq52he", 31 },
          "ycra8nm541z8pfcqsvg3v5sfa8dpyc0" },
        { { UINT64_C(1700000000000), 123456789, 'm', "8nkzwb8nkzwb8nkzwb8nkzwb8nkzwb8n", 32 },
          "mclpao9rn0h0630wr494ilypnjbuw0o9" },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        char out[FIRN_CUID2_BUF_MAX];
        firn__cuid2_hash(&cases[i].in, fingerprint, out);
        T_STR(out, cases[i].expect);
    }
}

T_TEST(base36_u64)
{
    static const struct {
        uint64_t v;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { 1, "1" },
        { 35, "z" },
        { 36, "10" },
        { 1295, "zz" },
        { 1296, "100" },
        { UINT64_MAX, "3w5e11264sgsf" },
    };
    for (size_t i = 0; i < T_LEN(cases); i++) {
        char out[FIRN__BASE36_U64_MAX + 1] = "";
        T_EQ(firn__base36_u64(cases[i].v, out), strlen(cases[i].text));
        T_STR(out, cases[i].text);
    }
}

/* As JavaScript's BigInt writes them. */
T_TEST(base36_512)
{
    static const char *const expect[] = {
        "0",
        "10",
        "6dp5qcb22im238nr3wvp0ic7q99w035jmy2iw7i6n43d37jtof",
        "t7kvrsfsjjwph1f4gqgcecxocdfpubt5wcoumebgxz0m2b8gqr37kur1qg14lvq4t8sgys5d7lu2fe0g3q9pjlr0ws"
        "9mmblr",
        "kcss921b6xitejl91dtna1q9btwkxogj03qux7myifrl90r3qj4tx0jgaw1xapxizh55r4kf51y5f5begzkebyfj3p"
        "z51l8v6rk",
        "14plki42mdv1mt36i2rnak3ginnt5vcx207hpuf9x0vj6i1i7h29nu12wls3ulfv1yyabi94ua3wauamsxz4snwv27"
        "fya36hqdj3",
    };
    uint8_t in[6][64] = { { 0 }, { [63] = 36 }, { 0 }, { 0 }, { 128 }, { 0 } };
    memset(in[2] + 32, 0xff, 32);
    for (int i = 0; i < 64; i++)
        in[3][i] = (uint8_t)i;
    memset(in[5], 0xff, 64);
    for (size_t i = 0; i < T_LEN(expect); i++) {
        char out[FIRN__BASE36_512_MAX + 1] = "";
        T_EQ(firn__base36_512(in[i], out), strlen(expect[i]));
        T_STR(out, expect[i]);
    }
}
