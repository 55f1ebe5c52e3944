/*
 * local_call - what a call of the leader's own process costs: a node of one member, and its store.
 * A stale read is the way to the member's thread and back alone: a frame, a mutex, a condition
 * variable, an event of the loop. A write waits for the disk of the folder as well.
 *
 * Usage: local_call FOLDER [CALLS]     a new folder, on a disk or in /dev/shm
 */
#include "raft/node.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { ROUNDS = 9, CALLS = 2000 };

struct cost { /* of one call, in microseconds; switches: of the whole process */
    double wall, cpu, switches;
};

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static struct cost now(void)
{
    struct timespec t;
    struct rusage u;
    clock_gettime(CLOCK_MONOTONIC, &t);
    getrusage(RUSAGE_SELF, &u);
    return (struct cost){ (double)t.tv_sec + (double)t.tv_nsec / 1e9,
                          seconds(&u.ru_utime) + seconds(&u.ru_stime), (double)u.ru_nvcsw };
}

static void check(int r, const char *what, const struct firn_diag *d)
{
    if (r == 0)
        return;
    fprintf(stderr, "local_call: %s: %s\n", what, d->text);
    exit(1);
}

static void read_once(struct firn_store *s, int i)
{
    static struct firn_record rec;
    struct firn_diag d = { 0 };
    (void)i;
    check(firn_store_read(s, firn_slice("k", 1), false, &rec, &d), "read", &d);
}

static void write_once(struct firn_store *s, int i)
{
    static unsigned value;
    char old[16], new[16];
    struct firn_diag d = { 0 };
    struct firn_cas want = { .key = firn_slice("k", 1) };
    (void)i;
    if (value > 0)
        want.old = firn_slice(old, (size_t)snprintf(old, sizeof old, "%u", value));
    want.value = firn_slice(new, (size_t)snprintf(new, sizeof new, "%u", ++value));
    check(firn_store_cas(s, &want, &d), "write", &d);
}

static int by_wall(const void *x, const void *y)
{
    const struct cost *a = x, *b = y;
    return (a->wall > b->wall) - (a->wall < b->wall);
}

static void measure(const char *what, struct firn_store *s, int calls,
                    void (*call)(struct firn_store *s, int i))
{
    struct cost round[ROUNDS];
    for (int n = 0; n < ROUNDS; n++) {
        struct cost begin = now();
        for (int i = 0; i < calls; i++)
            call(s, i);
        struct cost end = now();
        round[n] = (struct cost){ (end.wall - begin.wall) / calls * 1e6,
                                  (end.cpu - begin.cpu) / calls * 1e6,
                                  (end.switches - begin.switches) / calls };
    }
    qsort(round, ROUNDS, sizeof round[0], by_wall);
    printf("%-6s %8.1f us (best %.1f), %.1f us of processors, %.1f context switches\n", what,
           round[ROUNDS / 2].wall, round[0].wall, round[ROUNDS / 2].cpu,
           round[ROUNDS / 2].switches);
}

int main(int argc, char **argv)
{
    struct node *node;
    struct firn_store *store = NULL;
    struct firn_diag d = { 0 };
    int calls = argc > 2 ? (int)strtol(argv[2], NULL, 10) : CALLS;
    if (argc < 2 || calls <= 0) {
        fprintf(stderr, "usage: local_call FOLDER [CALLS]\n");
        return 2;
    }
    struct node_opts o = { .dir = argv[1], .listen = "127.0.0.1:0", .init = true, .fresh = true };
    check(node_start(&o, &node, &d), argv[1], &d);
    struct raft_channel *c = node_channel(node);
    check(c ? raft_store_new(c, "", 10000, &store, &d) : FIRN_ENOMEM, "store", &d);
    write_once(store, 0);
    measure("read", store, calls, read_once);
    measure("write", store, calls, write_once);
    firn_store_close(store);
    node_stop(node);
    return 0;
}
