#include "t.h"

#include "server/peers.h"

#include <string.h>

static int read_text(const char *text, struct node_face *out)
{
    return peer_read(text, strlen(text), out);
}

T_TEST(peer_answers)
{
    struct node_face f;
    T_EQ(read_text(
             "{\"name\":\"a\",\"ready\":true,\"slot\":7,\"layout\":\"x\",\"store\":{\"id\":\"ab\"},"
             "\"start\":\"cd\"}",
             &f),
         0);
    T_EQ(f.slot, 7);
    T_OK(f.ready);
    T_STR(f.layout, "x");
    T_STR(f.store, "ab");
    T_STR(f.start, "cd");
    T_EQ(
        read_text(
            "{\"slot\":null,\"ready\":false,\"layout\":\"x\",\"store\":{\"id\":null},\"start\":\"cd\"}",
            &f),
        0);
    T_EQ(f.slot, -1);
    T_OK(!f.ready);
    static const char *const bad[] = {
        "", "[]", "{}", "{\"slot\":7}", "<html>", "{\"layout\":\"x\""
    };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(read_text(bad[i], &f), FIRN_EFORMAT, "%s", bad[i]);
    char text[300];
    snprintf(text, sizeof text, "{\"start\":\"%0100d\",\"layout\":\"x\"}",
             1); /* too long to be one */
    T_EQ(read_text(text, &f), FIRN_EFORMAT);
}
