/*
 * Sealed IDs: what the database counts up, the public sees as text that it can neither count
 * through nor change.
 *
 *     cc sealed.c $(pkg-config --cflags --libs libfirn-seal) -o sealed && ./sealed
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <firn/random.h>
#include <firn/seal.h>

static int show(struct firn_seal *seal, uint64_t id, char text[FIRN_SEAL_TEXT_BUF])
{
    int r = firn_seal_text(seal, id, text);
    if (r == 0)
        printf("order %" PRIu64 " is %s\n", id, text);
    return r;
}

static int demo(struct firn_seal *seal)
{
    /* Keys are random bytes, kept like passwords. Real ones come from a key file
     * (firn_seal_from_text()); these live as long as the program. */
    uint8_t key[2][FIRN_SEAL_KEY_BYTES];
    firn_rng_bytes(firn_rng_thread(), key, sizeof key);

    char first[FIRN_SEAL_TEXT_BUF], text[FIRN_SEAL_TEXT_BUF];
    uint64_t id = 0;
    int r = firn_seal_add_key(seal, 1, key[0]);
    if (r == 0)
        r = show(seal, 1001, first);
    if (r == 0)
        r = show(seal, 1002, text); /* nothing tells that it is the next one */

    /* Rotation: the newest key seals, all of them open. */
    if (r == 0)
        r = firn_seal_add_key(seal, 2, key[1]);
    if (r == 0)
        r = show(seal, 1001, text);
    if (r == 0)
        r = firn_seal_open(seal, first, strlen(first), &id, NULL);
    if (r != 0)
        return r;
    printf("%s opens as %" PRIu64 "\n", first, id);

    /* Any change is noticed. */
    struct firn_diag why;
    first[10] = first[10] == 'x' ? 'y' : 'x';
    r = firn_seal_open(seal, first, strlen(first), &id, &why);
    printf("%s: %s\n", first, firn_error_message(r));
    return r == FIRN_EAUTH || r == FIRN_EFORMAT ? 0 : FIRN_EINVAL;
}

int main(void)
{
    struct firn_seal *seal = firn_seal_new();
    int r = seal ? demo(seal) : FIRN_ENOMEM;
    firn_seal_free(seal); /* wipes the keys */
    if (r != 0)
        fprintf(stderr, "%s\n", firn_error_message(r));
    return r != 0;
}
