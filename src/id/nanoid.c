/*
 * NanoID: random bytes are masked down to the next power of two and thrown away when they still
 * fall outside the alphabet. A remainder would be quicker and favour the first characters.
 */
#include "firn/nanoid.h"
#include "id/rng_take.h"

const struct firn_nanoid_alphabet firn_nanoid_default = {
    .size_ = 64,
    .mask_ = 63,
    .char_ = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
    .member_ = { [5] = 0x20, /* - */
                 [6] = 0xff,
                 [7] = 0x03, /* 0-9 */
                 [8] = 0xfe,
                 [9] = 0xff, /* A-O */
                 [10] = 0xff,
                 [11] = 0x87, /* P-Z _ */
                 [12] = 0xfe,
                 [13] = 0xff, /* a-o */
                 [14] = 0xff,
                 [15] = 0x07 /* p-z */ },
};

static int has(const uint8_t member[32], uint8_t c)
{
    return member[c >> 3] >> (c & 7) & 1;
}

int firn_nanoid_alphabet_init(struct firn_nanoid_alphabet *a, const char *chars, size_t size)
{
    if (!a || !chars || size < 2 || size > 256)
        return FIRN_EINVAL;
    struct firn_nanoid_alphabet made = { .size_ = (uint16_t)size };
    for (size_t i = 0; i < size; i++) {
        uint8_t c = (uint8_t)chars[i];
        if (has(made.member_, c))
            return FIRN_EINVAL;
        made.member_[c >> 3] |= (uint8_t)(1u << (c & 7));
        made.char_[i] = c;
    }
    unsigned mask = 1;
    while (mask < size - 1)
        mask = mask << 1 | 1;
    made.mask_ = (uint8_t)mask;
    *a = made;
    return 0;
}

int firn_nanoid(const struct firn_nanoid_alphabet *a, size_t len, struct firn_rng *rng, char *out)
{
    if (!rng || !out || len < 1 || len > FIRN_NANOID_LEN_MAX)
        return FIRN_EINVAL;
    if (!a)
        a = &firn_nanoid_default;
    uint8_t random[FIRN_NANOID_LEN_MAX];
    if (a->size_ == (size_t)a->mask_ + 1) { /* no byte is thrown away: nothing to wait for */
        firn__rng_take(rng, random, len);
        for (size_t i = 0; i < len; i++)
            out[i] = (char)a->char_[random[i] & a->mask_];
        out[len] = '\0';
        return 0;
    }
    for (size_t n = 0; n < len;) { /* more than half of the bytes are kept: it ends soon */
        size_t draw = len - n;
        firn__rng_take(rng, random, draw);
        for (size_t i = 0; i < draw; i++) {
            uint8_t v = random[i] & a->mask_;
            out[n] = (char)a->char_[v]; /* written in any case: no branch to mispredict */
            n += v < a->size_;
        }
    }
    out[len] = '\0';
    return 0;
}

int firn_nanoid_check(const char *p, size_t len, const struct firn_nanoid_alphabet *a)
{
    if (!p)
        return FIRN_EINVAL;
    if (len < 1 || len > FIRN_NANOID_LEN_MAX)
        return FIRN_EFORMAT;
    if (!a)
        a = &firn_nanoid_default;
    for (size_t i = 0; i < len; i++)
        if (!has(a->member_, (uint8_t)p[i]))
            return FIRN_EFORMAT;
    return 0;
}
