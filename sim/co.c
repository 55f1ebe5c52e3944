/*
 * Coroutines. The first entry needs makecontext(); later switches are setjmp and longjmp, twenty
 * times cheaper because they make no system call. Sanitizers want to see every switch, so they get
 * swapcontext().
 */
#undef _FORTIFY_SOURCE /* its longjmp takes another stack for a smashed one */
#include "world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CO_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CO_SANITIZED 1
#endif
#endif

static void enter(unsigned hi, unsigned lo)
{
    struct region *r = (struct region *)(((uintptr_t)hi << 32) | lo);
    proc_main(r);
    for (;;) /* ended: waits to be forgotten */
        co_wait(r);
}

void co_start(struct proc *p, struct world *w)
{
    struct image *m = p->region->image;
    uintptr_t r = (uintptr_t)p->region;
    (void)w;
    m->entered = false;
    getcontext(&m->context);
    m->context.uc_stack.ss_sp = m->stack;
    m->context.uc_stack.ss_size = sizeof m->stack;
    m->context.uc_link = NULL;
    m->low = m->stack + sizeof m->stack;
    makecontext(&m->context, (void (*)(void))enter, 2, (unsigned)(r >> 32), (unsigned)r);
}

void co_resume(struct world *w, struct proc *p)
{
    struct image *m = image_of(w, p);
#ifdef CO_SANITIZED
    swapcontext(&w->main_context, &m->context);
#else
    if (_setjmp(w->main_jump) != 0)
        return;
    if (m->entered)
        _longjmp(m->jump, 1);
    m->entered = true;
    setcontext(&m->context);
#endif
}

void co_wait(struct region *r)
{
    struct image *m = r->image;
    /* Some room below: registers, and the frame of the switching function. */
    char *low = (char *)__builtin_frame_address(0) - 4096;
    m->low = low < m->stack ? m->stack : low;
#ifdef CO_SANITIZED
    swapcontext(&m->context, &r->world->main_context);
#else
    if (_setjmp(m->jump) == 0)
        _longjmp(r->world->main_jump, 1);
#endif
}
