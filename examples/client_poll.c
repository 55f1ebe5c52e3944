/*
 * libfirn-client in an event loop: one descriptor for everything, nothing waits. Here the loop is
 * poll(); in libuv it would be a uv_poll_t, in epoll one more descriptor.
 *
 *     cc client_poll.c $(pkg-config --cflags --libs libfirn-client) -o client_poll
 *     ./client_poll firn://127.0.0.1:9001 10
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <firn/client.h>

int main(int argc, char **argv)
{
    struct firn_client *client;
    struct firn_diag diag;
    int wanted = argc > 2 ? atoi(argv[2]) : 10, failed = 0;
    if (argc < 2) {
        printf("usage: client_poll firn://HOST:PORT[,HOST:PORT...][/?OPTIONS] [HOW-MANY]\n");
        return 0;
    }
    if (firn_client_open(argv[1], &client, &diag) != 0) {
        fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    for (int i = 0; i < wanted; i++) { /* all at once; each answer comes back with its `user` */
        struct firn_client_ask ask = FIRN_CLIENT_ASK_INIT;
        ask.user = (void *)(intptr_t)i;
        if (firn_client_submit(client, &ask, &diag) != 0) {
            wanted = i; /* too many are under way: a real program takes some and goes on */
            break;
        }
    }
    struct pollfd p = { firn_client_fd(client), firn_client_events(client), 0 };
    for (int got = 0; got < wanted;) {
        struct firn_client_answer answer;
        if (poll(&p, 1, -1) < 0 || firn_client_pump(client) < 0)
            return 1;
        answer.size = sizeof answer;
        while (firn_client_take(client, &answer) == 0) {
            got++;
            failed |= answer.error != 0;
            if (answer.error)
                fprintf(stderr, "%d: %s\n", (int)(intptr_t)answer.user, answer.text);
            else
                printf("%d: %" PRIu64 "\n", (int)(intptr_t)answer.user, answer.id);
        }
    }
    firn_client_close(client);
    return failed;
}
