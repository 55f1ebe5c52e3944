/*
 * IDs in your own process, with no worker number to set: each process leases one from a store.
 *
 *     cc node.c $(pkg-config --cflags --libs libfirn-node) -pthread -o node
 *     ./node etcd://127.0.0.1:2379/firn        once `firn admin init --store URL` was done
 *     ./node sqlite:ids.db                     for the processes of one machine
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <firn/node.h>

static void *make_some(void *arg)
{
    struct firn_node *node = arg; /* any thread may ask */
    uint64_t ids[1000];
    size_t n;
    if (firn_node_fill(node, ids, 1000, &n) == 0)
        printf("a thread: %zu IDs, %" PRIu64 " to %" PRIu64 "\n", n, ids[0], ids[n - 1]);
    return NULL;
}

static int show(struct firn_node *node, const char *who)
{
    uint64_t id;
    struct firn_node_info info;
    int r = firn_node_next(node, &id);
    firn_node_info(node, &info);
    if (r != 0) {
        fprintf(stderr, "%s: no ID: %s; %s\n", who, firn_error_message(r), info.diag.text);
        return 1;
    }
    printf("%s: %" PRIu64 " on slot %u, %s\n", who, id, info.slot, info.state);
    return 0;
}

int main(int argc, char **argv)
{
    struct firn_node_opts opts = FIRN_NODE_OPTS_INIT;
    struct firn_node *node;
    struct firn_diag diag; /* says what is wrong, and what to do */
    opts.name = "example"; /* shown by `firn admin slots` */
    int r = firn_node_open(argc > 1 ? argv[1] : "memory:", &opts, &node, &diag);
    if (r != 0) {
        fprintf(stderr, "%s: %s\n", firn_error_message(r), diag.text);
        return 1;
    }
    int failed = show(node, "parent");

    pthread_t thread;
    if (pthread_create(&thread, NULL, make_some, node) == 0)
        pthread_join(thread, NULL);

    /* On a store that machines share a child leases a slot of its own with its first call:
     * nothing to take care of. With sqlite: a child gets FIRN_EFORKED; there, open the node
     * after the fork. */
    if (argc > 1 && strstr(argv[1], "://")) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int child_failed = show(node, "child");
            firn_node_close(node);
            fflush(stdout);
            _exit(child_failed);
        }
        int status = 0;
        waitpid(child, &status, 0);
        failed |= status != 0;
    }

    firn_node_close(node); /* gives the slot back */
    return failed;
}
