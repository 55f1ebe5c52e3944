/* Edit distances of known pairs, and what every distance must keep. */
#include "wire/distance.h"
#include "t.h"

static size_t between(const char *a, const char *b)
{
    return edit_distance(a, strlen(a), b, strlen(b));
}

T_TEST(known_pairs)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } pair[] = {
        { "", "", 0 },          { "", "abc", 3 },           { "slot", "slot", 0 },
        { "slot", "slots", 1 }, { "slto", "slot", 1 },      { "slot", "sot", 1 },
        { "slot", "slat", 1 },  { "kitten", "sitting", 3 }, { "verfiy", "verify", 1 },
        { "ab", "ba", 1 },      { "abcd", "badc", 2 },      { "abc", "cab", 2 },
    };
    for (size_t i = 0; i < T_LEN(pair); i++) {
        T_EQ(between(pair[i].a, pair[i].b), pair[i].distance, "%s, %s", pair[i].a, pair[i].b);
        T_EQ(between(pair[i].b, pair[i].a), pair[i].distance, "%s, %s", pair[i].b, pair[i].a);
    }
}

T_TEST(long_texts_are_compared_up_to_a_bound)
{
    char a[4 * NEAREST_LEN_MAX], b[sizeof a];
    memset(a, 'a', sizeof a);
    memcpy(b, a, sizeof b);
    memset(b + NEAREST_LEN_MAX, 'b', sizeof b - NEAREST_LEN_MAX);
    T_EQ(edit_distance(a, sizeof a, b, sizeof b), 0);
    T_EQ(edit_distance(a, sizeof a, "", 0), NEAREST_LEN_MAX);
}

T_TEST(a_slip_is_small_for_its_word)
{
    T_OK(edit_is_slip(1, 2));
    T_OK(!edit_is_slip(2, 5));
    T_OK(edit_is_slip(2, 6));
    T_OK(!edit_is_slip(3, 8));
}
