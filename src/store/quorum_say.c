/* Explains the states of a quorum's stores in one sentence. */
#include "store/quorum_say.h"
#include "wire/text.h"

#include <stdio.h>

enum { REASON_LEAST = 24 }; /* shorter ones tell nothing */

static bool is_in(const struct acceptor *a)
{
    return a->state == ACCEPTOR_MEMBER && a->member.state == MEMBER_FORMED;
}

static unsigned beside(const struct acceptor *a, unsigned n, unsigned i)
{
    unsigned same = 0;
    for (unsigned k = 0; k < n; k++)
        same += is_in(&a[i]) && is_in(&a[k]) && nonce_eq(&a[i].member.quorum, &a[k].member.quorum);
    return same;
}

unsigned quorum_together(const struct acceptor *a, unsigned n)
{
    unsigned most = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned same = beside(a, n, i);
        most = same > most ? same : most;
    }
    return most;
}

int quorum_hopeless(const struct acceptor *a, unsigned n)
{
    unsigned refused = 0, unfit = 0;
    int error = 0;
    for (unsigned i = 0; i < n; i++) {
        refused += a[i].state == ACCEPTOR_REFUSED;
        unfit += a[i].state == ACCEPTOR_UNFIT;
        if (a[i].state == ACCEPTOR_UNFIT && error == 0)
            error = a[i].error;
    }
    if (n - refused < n / 2 + 1)
        return FIRN_ESTORE;
    return n - refused - unfit < n / 2 + 1 ? error : 0;
}

/* ---- one store ---- */

#define ASK_DOCTOR "`firn admin doctor` says what can be done"
#define FROM_COPY                                                                      \
    "put its backup there, or a copy of a store that is left, then `firn admin admit " \
    "--as-is` it"

/* What can be done for one that is refused when no majority is left to give it the registers. */
static const struct {
    const char *in_short, *in_full;
} without_majority[] = {
    [REFUSED_EMPTY] = { ASK_DOCTOR, FROM_COPY },
    [REFUSED_BROKEN] = { ASK_DOCTOR, FROM_COPY },
    [REFUSED_FOREIGN] = { "name the right one", "name the right one in the URL" },
    [REFUSED_COUNT] = { "name all of them", "name all of them in the URL" },
    [REFUSED_CHANGED] = { ASK_DOCTOR, "if there is nothing newer, `firn admin admit --as-is` it" },
};

static const char *cure_of(const struct acceptor *a, bool lost, bool in_short)
{
    switch (a->state) {
    case ACCEPTOR_REFUSED:
        if (!lost)
            return "see that it is the right one, then `firn admin admit`";
        return in_short ? without_majority[a->refusal].in_short
                        : without_majority[a->refusal].in_full;
    case ACCEPTOR_BLANK:
        return "a quorum is formed when all of its stores are there";
    case ACCEPTOR_OPENING:
    case ACCEPTOR_AWAY:
        return in_short ? "" : "it takes part again by itself when it is back";
    case ACCEPTOR_MEMBER:
    case ACCEPTOR_UNFIT: /* the engine says what to set */
        break;
    }
    return "";
}

void quorum_reason(const struct acceptor *a, unsigned n, unsigned i, bool in_short,
                   char out[QUORUM_REASON_BUF])
{
    const char *why = a[i].why.text;
    const char *cure = cure_of(&a[i], quorum_hopeless(a, n) == FIRN_ESTORE, in_short);
    if (a[i].state == ACCEPTOR_BLANK)
        why = "it is empty";
    else if (a[i].state == ACCEPTOR_OPENING)
        why = "it does not answer";
    snprintf(out, QUORUM_REASON_BUF, "%s%s%s", why, *why && *cure ? ": " : "", cure);
}

/* Length of the part of an identity that names the server; the rest names the database on it.
 * 0: no part does. */
static size_t server_len(const char *identity)
{
    static const char *const all[] = { "redis:", "etcd:", "raft:" };
    static const char postgres[] = "postgres:";
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strncmp(identity, all[i], strlen(all[i])) == 0)
            return strlen(identity);
    if (strncmp(identity, postgres, strlen(postgres)) == 0)
        return strlen(postgres) + strcspn(identity + strlen(postgres), ":");
    return 0;
}

unsigned quorum_server_of(const struct acceptor *a, unsigned n, unsigned i)
{
    size_t len = server_len(a[i].identity);
    for (unsigned k = 0; k < n && len > 0; k++)
        if (server_len(a[k].identity) == len && memcmp(a[k].identity, a[i].identity, len) == 0)
            return k;
    return i;
}

/* ---- the sentence ---- */

/* In `room` bytes: the beginning and the end, which hold the cause and the cure. */
static void add_squeezed(struct text *t, const char *reason, size_t room)
{
    size_t len = strlen(reason), head = room / 3;
    if (len <= room)
        text_addf(t, "%s", reason);
    else
        text_addf(t, "%.*s ... %s", (int)head, reason, reason + len - (room - head - 5));
}

/* Bits of the stores that have this reason. */
static unsigned sharing(char reason[][QUORUM_REASON_BUF], unsigned n, unsigned i)
{
    unsigned set = 0;
    for (unsigned k = 0; k < n; k++)
        if (strcmp(reason[k], reason[i]) == 0)
            set |= 1u << k;
    return set;
}

/* "all 3", "store 2" or "stores 1, 3", by their places in the URL. */
static void name_stores(const struct acceptor *a, unsigned n, unsigned set, struct text *t)
{
    unsigned count = 0, said = 0;
    for (unsigned i = 0; i < n; i++)
        count += set >> i & 1;
    if (count == n) {
        text_addf(t, "all %u", n);
        return;
    }
    text_addf(t, count == 1 ? "store " : "stores ");
    for (unsigned place = 1; place <= n; place++)
        for (unsigned i = 0; i < n; i++)
            if ((set >> i & 1) && a[i].place == place)
                text_addf(t, "%s%u", said++ ? ", " : "", place);
}

static void add_reason(const struct acceptor *a, unsigned n, unsigned set, const char *reason,
                       struct text *t)
{
    char who[64];
    struct text w = { .p = who, .cap = sizeof who };
    name_stores(a, n, set, &w);
    size_t room = t->cap - t->len - 1, need = w.len + 4;
    if (room < need + REASON_LEAST)
        return;
    text_addf(t, "; %s: ", who);
    add_squeezed(t, reason, room - need);
}

/* Order: stores that need an operator, stores that may recover alone, errors of members. */
static unsigned rank(const struct acceptor *a)
{
    if (a->state == ACCEPTOR_REFUSED || a->state == ACCEPTOR_UNFIT)
        return 0;
    return a->state == ACCEPTOR_MEMBER ? 2 : 1;
}

void quorum_say(const struct acceptor *a, unsigned n, char *out, size_t size)
{
    char reason[PAXOS_ACCEPTORS_MAX][QUORUM_REASON_BUF];
    struct text t = { .p = out, .cap = size };
    unsigned told = 0;
    for (unsigned i = 0; i < n; i++)
        quorum_reason(a, n, i, true, reason[i]);
    text_addf(&t, "%u of %u stores take part, %u are needed", quorum_together(a, n), n, n / 2 + 1);
    for (unsigned r = 0; r < 3; r++)
        for (unsigned i = 0; i < n; i++) {
            if (rank(&a[i]) != r || !reason[i][0] || (told >> i & 1) || (r == 2 && told))
                continue;
            unsigned set = sharing(reason, n, i);
            add_reason(a, n, set, reason[i], &t);
            told |= set;
        }
}
