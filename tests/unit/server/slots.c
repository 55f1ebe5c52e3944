#include "t.h"

#include "server/slots.h"
#include "coord/record.h"

#include <string.h>

/* Due a minute after the start, then each minute; stays while the store is not read. */
T_TEST(slots_are_counted_when_due)
{
    static struct slots s;
    static struct lease lease;
    struct firn_store *store;
    T_EQ(firn_store_memory_new(&store), 0);
    for (uint32_t i = 0; i < 4; i++) {
        struct slot_record r = { .cluster = { .b = { 1 } }, .epoch = 1, .req = { .b = { 2 } } };
        char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
        r.state = i == 0 ? SLOT_RETIRED : SLOT_FREE;
        size_t key_len = slot_key(i, key), len = slot_encode(&r, text);
        struct firn_cas put = { .key = firn_slice(key, key_len), .value = firn_slice(text, len) };
        T_EQ(firn_store_cas(store, &put, NULL), 0);
    }
    T_EQ(slots_step(&s, store, &lease, 1000), 1000 + SLOTS_COUNT_MS);
    T_EQ(s.total, 0, "not at the start, which has enough to do");
    T_EQ(slots_step(&s, store, &lease, 1000 + SLOTS_COUNT_MS), 1000 + 2 * SLOTS_COUNT_MS);
    T_EQ(s.total, 0, "not before the store was looked at");
    struct slot_listed *list;
    size_t n;
    struct firn_diag d = { 0 };
    T_EQ(slots_list(&s, store, &lease, 1000, &list, &n, &d), FIRN_ENOSLOT);
    T_OK(strstr(d.text, "/readyz"), "it names the cause: %s", d.text);
    lease.view.grant.gen = 1;
    T_EQ(slots_step(&s, store, &lease, 1000 + 2 * SLOTS_COUNT_MS), 1000 + 3 * SLOTS_COUNT_MS);
    T_EQ(s.total, 4);
    T_EQ(s.used, 1, "the retired one");
    firn_store_close(store);
}
