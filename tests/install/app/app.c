/* What a user of the installed library might write; it is valid as C99 and as C++. */
#include <stdio.h>
#include <string.h>

#include <firn/clock.h>
#include <firn/gen.h>
#include <firn/random.h>
#include <firn/uuid.h>
#ifdef WITH_SEAL
#include <firn/seal.h>
#endif

static int use_firn(void)
{
    struct firn_layout layout;
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    struct firn_gen *gen;
    uint64_t a, b;
    if (firn_layout_parse("twitter", 7, 0, &layout, NULL) != 0 ||
        firn_gen_new(&layout, &opts, &gen) != 0)
        return 1;
    int r = firn_gen_next(gen, &a) != 0 || firn_gen_next(gen, &b) != 0 || a >= b;
    firn_gen_free(gen);

    struct firn_uuid id, again;
    char text[FIRN_UUID_TEXT_BUF];
    firn_uuid_v4(firn_rng_thread(), &id);
    firn_uuid_format(&id, text);
    r |= firn_uuid_parse(text, strlen(text), &again) != 0 || firn_uuid_cmp(&id, &again) != 0;
    r |= firn_uuid_cmp(&id, &firn_uuid_nil) == 0; /* data crosses the library's border, too */
    return r;
}

#ifdef WITH_SEAL
static int use_seal(void)
{
    static const uint8_t key[FIRN_SEAL_KEY_BYTES] = { 1, 2, 3 };
    char text[FIRN_SEAL_TEXT_BUF];
    uint64_t id = 0;
    struct firn_seal *s = firn_seal_new();
    int r = !s || firn_seal_add_key(s, 5, key) != 0 || firn_seal_text(s, 42, text) != 0 ||
            firn_seal_open(s, text, strlen(text), &id, NULL) != 0 || id != 42;
    firn_seal_free(s);
    return r;
}
#endif

int main(void)
{
    int r = use_firn();
#ifdef WITH_SEAL
    r |= use_seal();
#endif
    puts(r ? "failed" : "works");
    return r;
}
