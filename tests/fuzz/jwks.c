/*
 * A key set is any bytes: it is taken or refused with a reason, and what was taken has keys that
 * their kid, or their algorithm alone, finds.
 */
#include "proxy/jwks.h"

#include <stdlib.h>
#include <string.h>

static void check(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct jwks set;
    struct firn_diag why = { 0, "" };
    int r = jwks_read(&set, (const char *)data, size, &why);
    check(r == 0 ? set.n > 0 : set.n == 0 && why.text[0]);
    for (size_t i = 0; i < set.n; i++) {
        const struct jwks_key *k = &set.key[i];
        const char *alg = jwt_alg_name(k->alg);
        bool ambiguous;
        const struct jwks_key *found = jwks_find(
            &set, (struct slice){ alg, strlen(alg) },
            (struct slice){ k->named ? k->kid : NULL, strlen(k->kid) }, &ambiguous);
        check(found == k || ambiguous || (!k->named && found != NULL));
        check(k->alg == JWT_HS256 ? k->secret_len >= JWKS_SECRET_MIN : k->pkey != NULL);
    }
    jwks_done(&set);
    return 0;
}
