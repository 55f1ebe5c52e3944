/* Any bytes as a server's answers to firn top: they are refused, or what is read ends within its
 * room; and whatever was read can be drawn. */
#include "cli/duration.c"
#include "cli/watch/top_frame.c"
#include "cli/watch/top_node.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok)
        abort();
}

static void look(void *user, const char *path, const char *text, bool quoted)
{
    (void)user;
    (void)quoted;
    check(strlen(path) <= JSON_PATH_MAX && strlen(text) <= JSON_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct top_node n = { .url = "http://x", .asked = true };
    struct top_sample s = { .at_ns = 1 };
    const char *p = (const char *)data;
    char *text = NULL;
    size_t len;
    int any = json_each(p, size, look, NULL);
    check(any == 0 || any == FIRN_EFORMAT);
    int node = top_read_node(p, size, &s), metrics = top_read_metrics(p, size, &s);
    check(node == 0 || node == FIRN_EFORMAT);
    check(any == 0 || node != 0);
    if (node != 0 && metrics != 0)
        return 0;
    check(memchr(s.name, '\0', sizeof s.name) && memchr(s.reason, '\0', sizeof s.reason));
    top_node_update(&n, &s);
    s.at_ns = 2;
    top_node_update(&n, &s);
    FILE *f = open_memstream(&text, &len);
    check(f != NULL);
    struct top_view v = {
        .node = &n, .nodes = 1, .width = 1 + size % 200, .height = 10, .when = ""
    };
    top_frame(&v, f);
    fclose(f);
    free(text);
    return 0;
}
