/*
 * Any request through the whole HTTP side: it gets exactly one answer, whose length is the one that
 * its head says. The first byte chooses the port; the rest is the request as it comes from the
 * network.
 */
#include "../lib/http_world.h"

static void check(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    if (!started) {
        world_start();
        world.ctx.numbers_max = 300; /* work, not size, is what this looks for */
        started = true;
    }
    if (size < 1 || size > 128 * 1024)
        return 0;
    char *request = malloc(size);
    check(request != NULL);
    memcpy(request, data + 1, size - 1);
    bool head = size > 5 && memcmp(data + 1, "HEAD ", 5) == 0;
    if (world_ask(request, size - 1, (enum port)(data[0] % PORTS))) {
        check(memcmp(world.answer, "HTTP/1.1 ", 9) == 0);
        const char *length = strstr(world.answer, "\r\nContent-Length: ");
        const char *body = strstr(world.answer, "\r\n\r\n");
        check(length && body && length < body);
        size_t left = world.answer_len - (size_t)(body + 4 - world.answer);
        check(strtoull(length + 18, NULL, 10) == left || (head && left == 0));
        check(memcmp(world.answer + 9, "500", 3) != 0);
    }
    free(request);
    return 0;
}
