/* What a client takes a sequence for: only a clear "range" lets it fetch numbers ahead, because a
 * number of a gapless sequence that is fetched and not used is a hole. */
#include "client/internal.h"
#include "t.h"

T_TEST(only_range_is_a_range)
{
    static const struct {
        const char *body;
        enum sequence want;
    } c[] = {
        { "{\"name\":\"orders\",\"mode\":\"range\"}", SEQUENCE_RANGE },
        { "{\"mode\":\"range\",\"next\":\"7\"}", SEQUENCE_RANGE },
        { "{\"name\":\"orders\",\"mode\":\"gapless\"}", SEQUENCE_GAPLESS },
        { "{\"mode\":\"Range\"}", SEQUENCE_GAPLESS },
        { "{\"mode\":\"ranges\"}", SEQUENCE_GAPLESS },
        { "{\"mode\":7}", SEQUENCE_GAPLESS },
        { "{\"mode\":null}", SEQUENCE_GAPLESS },
        { "{\"name\":\"mode\",\"next\":\"range\"}", SEQUENCE_GAPLESS },
        { "{\"inner\":{\"mode\":\"range\"}}", SEQUENCE_GAPLESS },
        { "[\"mode\",\"range\"]", SEQUENCE_GAPLESS },
        { "{\"mode\":\"range", SEQUENCE_GAPLESS },
        { "{}", SEQUENCE_GAPLESS },
        { "", SEQUENCE_GAPLESS },
    };
    for (size_t i = 0; i < T_LEN(c); i++)
        T_EQ(sequence_read(c[i].body, strlen(c[i].body)), c[i].want, "%s", c[i].body);
}
