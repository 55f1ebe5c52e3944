/* TSIDs as another implementation writes and reads them. */
#include "t.h"

#include "firn/tsid.h"

T_TEST(tsid_known)
{
    static const struct {
        uint64_t number;
        const char *text;
        uint64_t unix_ms;
        uint32_t tail;
    } known[] = {
        { 0, "0000000000000", UINT64_C(1577836800000), 0 },
        { 1, "0000000000001", UINT64_C(1577836800000), 1 },
        { 31, "000000000000Z", UINT64_C(1577836800000), 31 },
        { 32, "0000000000010", UINT64_C(1577836800000), 32 },
        { 4194304, "0000000040000", UINT64_C(1577836800001), 0 },
        { UINT64_C(38352658567418872), "01221H8Q1MMZR", UINT64_C(1586980786360), 1725432 },
        { UINT64_C(501438102971408389), "0DXBQ9H279R05", UINT64_C(1697388960017), 3465221 },
        { UINT64_C(9223372036854775807), "7ZZZZZZZZZZZZ", UINT64_C(3776860055551), 4194303 },
        { UINT64_C(18431824777797353199), "FZJQYZAXDNFQF", UINT64_C(5972326273771), 1752815 },
        { UINT64_MAX, "FZZZZZZZZZZZZ", UINT64_C(5975883311103), 4194303 },
    };
    for (size_t i = 0; i < T_LEN(known); i++) {
        struct firn_tsid id = firn_tsid_from_u64(known[i].number), read;
        char text[FIRN_TSID_TEXT_BUF];
        firn_tsid_format(&id, text);
        T_STR(text, known[i].text);
        T_EQ(firn_tsid_parse(known[i].text, FIRN_TSID_TEXT_LEN, &read), 0);
        T_EQ(firn_tsid_u64(&read), known[i].number);
        T_EQ(firn_tsid_unix_ms(&read, FIRN_TSID_EPOCH_MS), known[i].unix_ms);
        T_EQ(firn_tsid_tail(&read), known[i].tail);
    }
}
