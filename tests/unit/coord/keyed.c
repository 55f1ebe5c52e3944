/* Registers of clients' keys: their content, and the outcome of creating and removing them. */
#include "t.h"

#include "coord/keyed.h"

static struct nonce fresh(void)
{
    struct nonce v;
    t_random_bytes(v.b, sizeof v.b);
    return v;
}

T_TEST(keyed_period_of_a_name)
{
    static const struct {
        const char *name;
        uint64_t period;
    } row[] = { { "orders", 0 }, { "orders@20260101", 20260101 }, { "a@7x", 7 }, { "a@", 0 } };
    for (size_t i = 0; i < T_LEN(row); i++)
        T_EQ(keyed_period(row[i].name, strlen(row[i].name)), row[i].period, "%s", row[i].name);
}

T_TEST(keyed_registers_of_a_list)
{
    struct seq_record r = { .step = 5, .next = 100, .max = 1000, .req = fresh() };
    struct seq_keys keys = { .n = 2, .at = 1700000000 };
    struct firn_cas cas[2];
    struct keyed_text text[2];
    keys.key[0] = (struct seq_keyed){ fresh(), 3, 10, 2 };
    keys.key[1] = (struct seq_keyed){ fresh(), 4, 95, 1 };
    keyed_creates(&r, &keys, 20260101, cas, text);
    for (size_t i = 0; i < 2; i++) {
        struct idem_record idem;
        char key[RECORD_KEY_BUF];
        T_OK(cas[i].old.p == NULL);
        T_EQ(idem_key(&keys.key[i].key, key), cas[i].key.len);
        T_OK(memcmp(key, cas[i].key.p, cas[i].key.len) == 0);
        T_EQ(idem_parse(cas[i].value.p, cas[i].value.len, &idem, NULL), 0);
        T_EQ(idem.first, keys.key[i].first);
        T_EQ(idem.count, keys.key[i].count);
        T_EQ(idem.args, keys.key[i].args);
        T_EQ(idem.step, 5);
        T_EQ(idem.period, 20260101);
        T_EQ(idem.at, 1700000000);
        T_OK(nonce_eq(&idem.req, &r.req));
    }
}

static struct keyed request(uint64_t first)
{
    return (struct keyed){ .ask = { .key = fresh(), .args = 9 },
                           .idem = {
                               .args = 9, .first = first, .step = 1, .count = 1, .req = fresh() } };
}

T_TEST(keyed_keep_outcomes)
{
    struct keyed y[4] = { request(1), request(2), request(3), request(4) };
    struct keyed *list[4] = { &y[0], &y[1], &y[2], &y[3] };
    struct keyed_keep k;
    y[3].ask.key = y[0].ask.key; /* twice */
    keyed_keep_build(&k, list, 4);
    T_EQ(k.n, 3);
    T_OK(!keyed_keep_written(&k, 0, 0));
    T_OK(y[0].kept && y[0].result == 0 && !y[0].replayed);
    /* Our own write of an earlier attempt: not replayed. */
    T_OK(keyed_keep_written(&k, 1, FIRN_ECONFLICT));
    struct idem_record same = y[1].idem;
    keyed_keep_read(&k, 1, 0, &same, NULL);
    T_OK(y[1].kept && y[1].result == 0 && !y[1].replayed);
    /* Another request's: that is the answer. */
    struct idem_record other = y[2].idem;
    other.first = 77;
    other.req = fresh();
    T_OK(keyed_keep_written(&k, 2, FIRN_ECONFLICT));
    keyed_keep_read(&k, 2, 0, &other, NULL);
    T_OK(y[2].kept && y[2].replayed && y[2].idem.first == 77);
    T_EQ(y[3].result, FIRN_EAGAIN);
    T_OK(!y[3].kept);
}

T_TEST(keyed_keep_errors)
{
    struct keyed y[3] = { request(1), request(2), request(3) };
    struct keyed *list[3] = { &y[0], &y[1], &y[2] };
    struct keyed_keep k;
    struct idem_record other = y[2].idem;
    other.args = 10;
    keyed_keep_build(&k, list, 3);
    T_OK(!keyed_keep_written(&k, 0, FIRN_EIO));
    T_EQ(y[0].result, FIRN_EIO);
    T_OK(keyed_keep_written(&k, 1, FIRN_ECONFLICT));
    keyed_keep_read(&k, 1, FIRN_ENOENT, &other, NULL); /* removed just now */
    T_EQ(y[1].result, FIRN_EAGAIN);
    T_OK(keyed_keep_written(&k, 2, FIRN_ECONFLICT));
    keyed_keep_read(&k, 2, 0, &other, NULL);
    T_EQ(y[2].result, FIRN_EREUSED);
    for (size_t i = 0; i < 3; i++)
        T_OK(!y[i].kept && y[i].idem.first == i + 1);
}

T_TEST(keyed_sweep_takes_the_old_ones)
{
    struct keyed_sweep w = { .before_s = 100 };
    struct idem_record idem = { .args = 1, .first = 1, .step = 1, .count = 1, .req = fresh() };
    char text[RECORD_TEXT_MAX];
    size_t taken = 0;
    T_OK(keyed_sweep_add(&w, firn_slice("idem/x", 6), firn_slice("rubbish", 7)));
    idem.at = 100;
    T_OK(keyed_sweep_add(&w, firn_slice("idem/x", 6), firn_slice(text, idem_encode(&idem, text))));
    T_EQ(w.n, 0);
    idem.at = 99;
    size_t len = idem_encode(&idem, text);
    while (keyed_sweep_add(&w, firn_slice("idem/x", 6), firn_slice(text, len)))
        taken++;
    T_EQ(taken, KEYED_SWEEP_MAX);
    T_OK(w.cas[0].value.p == NULL && w.cas[0].old.len == len);
}

/* A damaged register must not give a request more numbers than it wants, or none. */
T_TEST(keyed_check_bounds_the_count)
{
    struct idem_record kept = { .args = 5, .first = 1, .step = 1, .count = 3 };
    T_EQ(keyed_check(&kept, 5, 3, NULL), 0);
    T_EQ(keyed_check(&kept, 5, 4, NULL), 0);
    T_EQ(keyed_check(&kept, 6, 3, NULL), FIRN_EREUSED);
    T_EQ(keyed_check(&kept, 5, 2, NULL), FIRN_EREUSED);
    kept.count = 0;
    T_EQ(keyed_check(&kept, 5, 3, NULL), FIRN_EREUSED);
    T_EQ(keyed_check(&kept, 5, 0, NULL), 0); /* a key for IDs holds texts */
}
