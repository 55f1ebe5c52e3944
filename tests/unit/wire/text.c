/* Text in a fixed buffer: what fits, and what is dropped. */
#include "wire/text.h"
#include "t.h"

T_TEST(pieces_follow_each_other)
{
    char out[16];
    struct text t = { .p = out, .cap = sizeof out };
    text_addf(&t, "%s", "");
    T_EQ(t.len, 0);
    T_STR(out, "");
    text_addf(&t, "a%d", 1);
    text_addf(&t, ", b%d", 22);
    T_STR(out, "a1, b22");
    T_EQ(t.len, 7);
    T_OK(!t.truncated);
}

/* For every size of the buffer: the beginning of the text, its NUL, and not a byte behind it. */
T_TEST(the_end_is_dropped_at_every_size)
{
    static const char whole[] = "one two three";
    for (size_t cap = 1; cap <= sizeof whole + 1; cap++) {
        char out[sizeof whole + 2];
        memset(out, '#', sizeof out);
        struct text t = { .p = out, .cap = cap };
        text_addf(&t, "one");
        text_addf(&t, " %s", "two");
        text_addf(&t, " three");
        size_t fits = cap < sizeof whole ? cap - 1 : sizeof whole - 1;
        T_EQ(t.len, fits, "cap %zu", cap);
        T_EQ(t.truncated, fits < sizeof whole - 1, "cap %zu", cap);
        T_EQ(memcmp(out, whole, fits), 0);
        T_EQ(out[fits], '\0');
        T_EQ(out[cap], '#');
        text_addf(&t, "%s", "");
        T_EQ(t.truncated, fits < sizeof whole - 1, "nothing is dropped of nothing");
    }
}
