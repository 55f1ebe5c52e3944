/* Header fields on their way: which never pass, and how links change the others. */
#include "t.h"

#include "proxy/fields.h"

static struct fields f;

static const char *written(void)
{
    static char text[4096];
    struct buf b;
    buf_init(&b, sizeof text - 1);
    fields_write(&f, &b);
    memcpy(text, b.p ? b.p : "", b.len);
    text[b.len] = '\0';
    buf_done(&b);
    return text;
}

static void take(const char *const *pairs, size_t n, bool request)
{
    static struct http_header h[64];
    for (size_t i = 0; i < n; i++)
        h[i] = (struct http_header){ slice_of(pairs[2 * i]), slice_of(pairs[2 * i + 1]) };
    fields_take(&f, h, n, request);
}

T_TEST(fields_of_the_connection_stay_behind)
{
    static const char *const in[] = { "Host",
                                      "a",
                                      "CONNECTION",
                                      "x-a , Close,X-B",
                                      "X-A",
                                      "1",
                                      "x-b",
                                      "2",
                                      "X-C",
                                      "3",
                                      "TE",
                                      "trailers",
                                      "Keep-Alive",
                                      "5",
                                      "Transfer-Encoding",
                                      "chunked",
                                      "Content-Length",
                                      "5",
                                      "Upgrade",
                                      "h2c",
                                      "Trailer",
                                      "X",
                                      "Proxy-Connection",
                                      "x",
                                      "Expect",
                                      "100-continue",
                                      "connection",
                                      "x-d",
                                      "X-D",
                                      "4",
                                      "Cookie",
                                      "c" };
    take(in, T_LEN(in) / 2, true);
    T_STR(written(), "Host: a\r\nX-C: 3\r\nCookie: c\r\n");
    take(in, T_LEN(in) / 2, false);
    T_STR(written(), "Host: a\r\nX-C: 3\r\nExpect: 100-continue\r\nCookie: c\r\n");
    T_OK(!f.failed);
}

T_TEST(fields_change)
{
    static const char *const in[] = { "A", "1", "b", "2", "a", "3", "C", "4" };
    take(in, 4, true);
    fields_set(&f, slice_of("a"), slice_of("9"));
    fields_set(&f, slice_of("D"), slice_of("5"));
    fields_add(&f, slice_of("B"), slice_of("6"));
    T_STR(written(), "a: 9\r\nb: 2\r\nC: 4\r\nD: 5\r\nB: 6\r\n");
    fields_remove(&f, slice_of("B"));
    T_STR(written(), "a: 9\r\nC: 4\r\nD: 5\r\n");
    T_OK(slice_is(fields_get(&f, "c"), "4") && !fields_get(&f, "b").p);
    for (size_t i = f.n; i < FIELDS_MAX; i++)
        fields_add(&f, slice_of("X"), slice_of(""));
    T_OK(!f.failed);
    fields_add(&f, slice_of("X"), slice_of(""));
    T_OK(f.failed);
}

T_TEST(fields_that_are_alike)
{
    static const char *const in[] = { "X_User.ID",  "1", "x-user-id", "2",
                                      "X-User-Id2", "3", "XUser-ID",  "4" };
    T_OK(field_alike(slice_of("X!A"), slice_of("x_a")) &&
         !field_alike(slice_of("xa"), slice_of("x-a")) &&
         !field_alike(slice_of("x1"), slice_of("x-")));
    take(in, 4, true);
    fields_set(&f, slice_of("X-User-ID"), slice_of("9"));
    T_STR(written(), "X-User-ID: 9\r\nX-User-Id2: 3\r\nXUser-ID: 4\r\n");
    take(in, 4, true);
    fields_remove(&f, slice_of("x-user-id"));
    T_STR(written(), "X-User-Id2: 3\r\nXUser-ID: 4\r\n");
}

T_TEST(fields_with_many_connections)
{
    static const char *in[2 * 9];
    for (int i = 0; i < 9; i++) {
        in[2 * i] = "Connection";
        in[2 * i + 1] = "x";
    }
    take(in, 9, true);
    T_OK(f.failed, "rather refused than let through");
}
