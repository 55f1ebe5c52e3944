/* What a refusal by PostgreSQL means for a batch. */
#include "t.h"

#include "auditlog/commit.h"

T_TEST(commit_end_of_sqlstates)
{
    static const struct {
        const char *state;
        enum commit_end end;
    } rows[] = {
        { "22P02", COMMIT_DIVIDE },    { "22P05", COMMIT_DIVIDE },       { "23502", COMMIT_DIVIDE },
        { "23505", COMMIT_DUPLICATE }, { "23514", COMMIT_NO_PARTITION }, { "54000", COMMIT_DIVIDE },
        { "40P01", COMMIT_AGAIN },     { "40001", COMMIT_AGAIN },        { "55P03", COMMIT_AGAIN },
        { "57014", COMMIT_AGAIN },     { "53100", COMMIT_AWAY },         { "42501", COMMIT_AWAY },
        { "42P01", COMMIT_AWAY },      { "57P01", COMMIT_AWAY },         { "", COMMIT_AWAY },
    };
    for (size_t i = 0; i < T_LEN(rows); i++)
        T_EQ(commit_end_of(rows[i].state), rows[i].end, "%s", rows[i].state);
}
