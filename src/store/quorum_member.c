/* The record px-member as text: one line per field, all of them, in this order. Tested by
 * tests/store/quorum.py. */
#include "store/quorum_acceptor.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const state_name[] = { "forming", "formed" };

static void hex_of(const struct nonce *n, char out[33])
{
    for (size_t i = 0; i < sizeof n->b; i++)
        snprintf(out + 2 * i, 3, "%02x", n->b[i]);
}

size_t quorum_member_encode(const struct quorum_member *m, char out[MEMBER_TEXT_MAX])
{
    char quorum[33], self[33];
    hex_of(&m->quorum, quorum);
    hex_of(&m->self, self);
    int n = snprintf(out, MEMBER_TEXT_MAX,
                     "firn=px-member 1\nstate=%s\nquorum=%s\nself=%s\nacceptors=%" PRIu64
                     "\nfloor=%" PRIu64 "\nstore=%s\n",
                     state_name[m->state], quorum, self, m->acceptors, m->floor, m->store);
    firn_assert(n > 0 && n < MEMBER_TEXT_MAX, "n=%d", n); /* a truncated record reads as another */
    return (size_t)n;
}

static bool get_nonce(const char *hex, struct nonce *out)
{
    for (size_t i = 0; i < sizeof out->b; i++) {
        unsigned v;
        if (sscanf(hex + 2 * i, "%2x", &v) != 1)
            return false;
        out->b[i] = (uint8_t)v;
    }
    return true;
}

int quorum_member_parse(const char *p, size_t len, struct quorum_member *out, struct firn_diag *d)
{
    char text[MEMBER_TEXT_MAX + 1], again[MEMBER_TEXT_MAX], state[8], quorum[33], self[33];
    struct quorum_member m = { 0 };
    if (len <= MEMBER_TEXT_MAX) {
        memcpy(text, p, len);
        text[len] = '\0';
        if (sscanf(text,
                   "firn=px-member 1\nstate=%7s\nquorum=%32s\nself=%32s\nacceptors=%" SCNu64
                   "\nfloor=%" SCNu64 "\nstore=%63s\n",
                   state, quorum, self, &m.acceptors, &m.floor, m.store) == 6 &&
            strlen(quorum) == 32 && strlen(self) == 32 && get_nonce(quorum, &m.quorum) &&
            get_nonce(self, &m.self)) {
            m.state = strcmp(state, state_name[MEMBER_FORMED]) == 0 ? MEMBER_FORMED
                                                                    : MEMBER_FORMING;
            /* sscanf is generous; what is written again must be what was read */
            if (m.floor <= MEMBER_FLOOR_MAX && quorum_member_encode(&m, again) == len &&
                memcmp(again, p, len) == 0) {
                *out = m;
                return 0;
            }
        }
    }
    return firn__diag(d, FIRN_EFORMAT, 0,
                      "px-member is not a record that this version of firn reads");
}
