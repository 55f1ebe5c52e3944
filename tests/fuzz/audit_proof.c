/*
 * A proof is any bytes: it is refused with a reason, or it is read, and what is written of it is
 * read as the same. What no key has signed proves nothing; the key of this target signs nothing
 * but the rows whose actor is "a".
 */
#include "auditlog/proof.h"

#include <stdlib.h>
#include <string.h>

/* The secret of the corpus' key is thrown away. */
static const char public_pem[] = "-----BEGIN PUBLIC KEY-----\n"
                                 "MCowBQYDK2VwAyEA10xABwYJrBGzpKspuPOiff8SqCx17ATSc4OkgtyQQFY=\n"
                                 "-----END PUBLIC KEY-----\n";

static void check(int ok)
{
    if (!ok)
        abort();
}

static bool same(struct slice a, struct slice b)
{
    return a.len == b.len && memcmp(a.p, b.p, a.len) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct head_keys *keys;
    struct proof p, back;
    struct firn_diag d = { 0, "" };
    if (!keys)
        check(head_keys_new(&keys) == 0 &&
              head_keys_add(keys, (struct slice){ public_pem, sizeof public_pem - 1 }, &d) == 0);
    int r = proof_read((struct slice){ (const char *)data, size }, &p, &d);
    if (r) {
        check(d.text[0] != '\0');
        return 0;
    }
    struct buf out = { .max = 64 * 1024 * 1024 };
    proof_write(&p, &out);
    check(!out.failed && proof_read((struct slice){ out.p, out.len }, &back, &d) == 0);
    check(same(p.row.actor, back.row.actor) && same(p.row.detail, back.row.detail) &&
          p.row.id == back.row.id && p.row.at_us == back.row.at_us && p.place == back.place &&
          p.path_n == back.path_n && p.heads_n == back.heads_n);
    d.text[0] = '\0';
    r = proof_check(&p, keys, &d);
    check(r == proof_check(&back, keys, NULL));
    check(r ? d.text[0] != '\0' : p.row.actor.len == 1 && *p.row.actor.p == 'a');
    proof_done(&p);
    proof_done(&back);
    buf_done(&out);
    return 0;
}
