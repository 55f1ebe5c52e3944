/*
 * IDs from firnd servers, in the three modes of libfirn-client.
 *
 *     cc client.c $(pkg-config --cflags --libs libfirn-client) -o client
 *     ./client firn://127.0.0.1:9001                      one server, as `firnd` starts it
 *     ./client firn://a:9001,b:9001,c:9001                any of three: the others may die
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <firn/client.h>

static int show(const char *servers, const char *options)
{
    struct firn_client *client;
    struct firn_diag
        diag; /* what is wrong with the URL; which servers were tried, and what each answered */
    char url[1024];
    uint64_t id, more[3];
    snprintf(url, sizeof url, "%s/?%s", servers, options);
    if (firn_client_open(url, &client, &diag) != 0) {
        fprintf(stderr, "%s: %s\n", url, diag.text);
        return 1;
    }
    int failed = firn_client_next(client, &id, &diag) != 0 ||
                 firn_client_next_n(client, more, 3, &diag) != 0;
    if (failed)
        fprintf(stderr, "%s: %s\n", options, diag.text);
    else
        printf("%-16s %" PRIu64 ", then %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", options, id,
               more[0], more[1], more[2]);
    firn_client_close(client);
    return failed;
}

static int show_text(const char *servers)
{
    struct firn_client *client;
    struct firn_diag diag;
    char url[1024], text[FIRN_CLIENT_TEXT_BUF];
    snprintf(url, sizeof url, "%s/?kind=uuidv7", servers);
    if (firn_client_open(url, &client, NULL) != 0)
        return 1;
    int failed = firn_client_next_text(client, NULL, text, sizeof text, &diag) != 0;
    printf("%-16s %s\n", "kind=uuidv7", failed ? diag.text : text);
    firn_client_close(client);
    return failed;
}

/* A retry with the same key gets the same number, so an order has one whatever happens. */
static int show_keyed(const char *servers)
{
    struct firn_client *client;
    struct firn_diag diag;
    char url[1024];
    uint64_t first = 0, again = 0;
    snprintf(url, sizeof url, "%s/?seq=default", servers);
    if (firn_client_open(url, &client, NULL) != 0)
        return 1;
    int failed = firn_client_next_keyed(client, "order-4711", &first, &diag) != 0 ||
                 firn_client_next_keyed(client, "order-4711", &again, &diag) != 0;
    if (failed)
        fprintf(stderr, "keyed: %s\n", diag.text);
    else
        printf("%-16s %" PRIu64 " and again %" PRIu64 "\n", "a ticket by key", first, again);
    firn_client_close(client);
    return failed || first != again;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        printf("usage: client firn://HOST:PORT[,HOST:PORT...]\n");
        return 0;
    }
    return show(argv[1], "mode=remote") | show(argv[1], "mode=prefetch") |
           show(argv[1], "mode=leased") | show_text(argv[1]) | show_keyed(argv[1]);
}
