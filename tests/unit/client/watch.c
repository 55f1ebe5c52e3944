/* Servers on one slot: seen twice, the one with the higher start is avoided. */
#include "t.h"

#include "client/watch.h"

#include <stdio.h>

static void say(struct node_face *f, const char *start, int slot, bool ready)
{
    char text[300];
    int n = snprintf(
        text, sizeof text,
        "{\"layout\":\"x\",\"start\":\"%s\",\"slot\":%d,\"ready\":%s,\"store\":{\"id\":"
        "\"7\"},\"clock\":{\"start\":\"no\",\"slot\":9}}",
        start, slot, ready ? "true" : "false");
    watch_read(text, (size_t)n, f);
}

T_TEST(watch_reads_a_node)
{
    struct node_face f;
    say(&f, "ab", 17, true);
    T_OK(f.slot == 17 && f.ready && strcmp(f.start, "ab") == 0 && strcmp(f.layout, "x") == 0);
    static const char *const bad[] = { "", "{", "[]", "{\"slot\":null}", "{\"slot\":\"5\"}", "5" };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        watch_read(bad[i], strlen(bad[i]), &f);
        T_EQ(f.slot, -1, "%s", bad[i]);
    }
}

T_TEST(watch_avoids_one_of_two)
{
    struct watch w = { .at = 0 };
    say(&w.face[0], "a", 1, true);
    say(&w.face[1], "c", 2, true);
    say(&w.face[2], "b", 2, true);
    T_EQ(watch_judge(&w, 3), 0); /* a slot of a shared store may just have changed hands */
    T_EQ(watch_judge(&w, 3), 2); /* the higher start */
    T_EQ(watch_judge(&w, 3), 2);
    say(&w.face[1], "c", 3, true); /* it took another slot */
    T_EQ(watch_judge(&w, 3), 0);
    say(&w.face[0], "c", 3, true); /* one process under two addresses */
    T_EQ(watch_judge(&w, 3) | watch_judge(&w, 3), 0);
    say(&w.face[0], "d", 3, false); /* one that gives out no IDs */
    T_EQ(watch_judge(&w, 3) | watch_judge(&w, 3), 0);
}
