/*
 * IDs in one call: monotonic UUIDs and ULIDs from the calling thread's page, Snowflake IDs from one
 * generator of the process. A call inside another one of the same thread (a signal handler) takes a
 * generator of its own, whose random bits keep the IDs apart.
 * Nothing here may run again by itself in a child of fork(): FIRN_WORKER_ID is inherited, the right
 * to the number is not. The process's page therefore says that it is idle from the start, and a
 * wiped one that this is a child.
 */
#include "firn/now.h"
#include "id/rng_take.h"
#include "platform/thread.h"
#include "platform/wipe_page.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- per thread --- */

int firn_uuid_v7_now(struct firn_uuid *out)
{
    struct firn_uuid_v7_gen own = FIRN_UUID_V7_GEN_INIT;
    struct firn__thread *t = firn__thread();
    if (__builtin_expect(t->busy != 0, 0))
        return firn_uuid_v7(&own, firn_now_ms(), &t->rng, out);
    t->busy = 1;
    RNG_ORDER();
    int r = firn_uuid_v7(&t->v7, firn_now_ms(), &t->rng, out);
    RNG_ORDER();
    if (__builtin_expect(t->busy == 0, 0)) { /* a handler forked: this is the child */
        t->v7 = own;
        return firn_uuid_v7_now(out);
    }
    t->busy = 0;
    return r;
}

/* A random part that cannot be counted up any more goes on in the next millisecond. */
static int next_ulid(struct firn_ulid_gen *g, struct firn_rng *rng, struct firn_ulid *out)
{
    int r = firn_ulid_next(g, firn_now_ms(), rng, out);
    return r == FIRN_EOVERFLOW ? firn_ulid_next(g, g->fresh_ms_, rng, out) : r;
}

int firn_ulid_now(struct firn_ulid *out)
{
    struct firn_ulid_gen own = FIRN_ULID_GEN_INIT;
    struct firn__thread *t = firn__thread();
    if (__builtin_expect(t->busy != 0, 0))
        return next_ulid(&own, &t->rng, out);
    t->busy = 1;
    RNG_ORDER();
    int r = next_ulid(&t->ulid, &t->rng, out);
    RNG_ORDER();
    if (__builtin_expect(t->busy == 0, 0)) {
        t->ulid = own;
        return firn_ulid_now(out);
    }
    t->busy = 0;
    return r;
}

int firn_uuid_v7_now_text(char out[FIRN_UUID_TEXT_BUF])
{
    struct firn_uuid id;
    int r = out ? firn_uuid_v7_now(&id) : FIRN_EINVAL;
    if (r == 0)
        firn_uuid_format(&id, out);
    return r;
}

int firn_ulid_now_text(char out[FIRN_ULID_TEXT_BUF])
{
    struct firn_ulid id;
    int r = out ? firn_ulid_now(&id) : FIRN_EINVAL;
    if (r == 0)
        firn_ulid_format(&id, out);
    return r;
}

/* --- per process --- */

enum { CHILD, IDLE, MAKING, READY }; /* CHILD is what a wiped page says */

static struct process {
    _Atomic uint32_t state;
    struct firn_shared gen;
} * process;

__attribute__((constructor(101))) static void loaded(void)
{
    process = firn__wipe_page_new(sizeof *process);
    if (process)
        process->state = IDLE;
}

int firn_snowflake_setup(const struct firn_layout *l, const struct firn_gen_opts *opts)
{
    struct firn_layout standard;
    struct firn_shared *made = NULL;
    if (!process)
        return FIRN_ENOMEM;
    int r = l ? 0 : firn_layout_parse("firn", 4, 0, &standard, NULL);
    if (r == 0)
        r = firn_shared_new(l ? l : &standard, opts, &made);
    if (r)
        return r;
    for (uint32_t was = atomic_load(&process->state);;) {
        if (was == READY) {
            r = FIRN_ECONFLICT;
            break;
        }
        if (was == MAKING) {
            sched_yield();
            was = atomic_load(&process->state);
        } else if (atomic_compare_exchange_weak(&process->state, &was, MAKING)) {
            process->gen = *made; /* no other thread has seen either */
            atomic_store(&process->state, READY);
            break;
        }
    }
    firn_shared_free(made);
    return r;
}

static int setup_from_environment(void)
{
    struct firn_layout l;
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    uint64_t worker;
    if (!process)
        return FIRN_ENOMEM;
    uint32_t state = atomic_load(&process->state);
    if (state != IDLE)
        return state == CHILD ? FIRN_EFORKED : 0;
    const char *text = getenv("FIRN_WORKER_ID");
    if (!text || !text[0])
        return FIRN_ENOSLOT;
    if (firn_u64_parse(text, strlen(text), &worker) != 0)
        return FIRN_EFORMAT;
    int r = firn_layout_parse("firn", 4, 0, &l, NULL);
    if (r == 0 && worker >= firn_layout_slots(&l))
        return FIRN_ERANGE;
    opts.slot = (uint32_t)worker;
    if (r == 0)
        r = firn_snowflake_setup(&l, &opts);
    return r == FIRN_ECONFLICT ? 0 : r; /* another thread was faster, with the same number */
}

int firn_snowflake_now(uint64_t *out_id)
{
    if (!out_id)
        return FIRN_EINVAL;
    while (!process || atomic_load_explicit(&process->state, memory_order_acquire) != READY) {
        int r = setup_from_environment();
        if (r)
            return r;
    }
    return firn_shared_next(&process->gen, out_id);
}

int firn_snowflake_now_text(char out[FIRN_U64_TEXT_BUF])
{
    uint64_t id;
    int r = out ? firn_snowflake_now(&id) : FIRN_EINVAL;
    if (r == 0)
        firn_u64_format(id, out);
    return r;
}
