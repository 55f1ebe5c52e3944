/*
 * Any bytes as a composition: a target, a line of a shape and the JSON of a part, each up to a NUL.
 * A target that is filled in is one path with one query; what a shape writes is JSON.
 */
#include "proxy/json_pick.h"
#include "proxy/path.h"
#include "proxy/shape.h"
#include "proxy/template.h"

#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 1 << 20 };

static void check(bool ok)
{
    if (!ok)
        abort();
}

/* Takes what stands before the next NUL off the input. */
static struct slice part(struct slice *left)
{
    const char *end = left->len ? memchr(left->p, 0, left->len) : NULL;
    size_t n = end ? (size_t)(end - left->p) : left->len;
    struct slice out = { left->p, n };
    n += end != NULL;
    *left = (struct slice){ left->p + n, left->len - n };
    return out;
}

static enum template_value value(void *user, struct slice name, struct buf *out)
{
    const struct slice *text = user;
    if (name.len % 3 == 0)
        return name.len % 2 ? TEMPLATE_MISSING : TEMPLATE_ABSENT;
    if (text->len > 0)
        buf_add(out, text->p, text->len);
    return TEMPLATE_THERE;
}

static void fill(struct slice text, struct slice is)
{
    struct firn_diag why = { 0, "" };
    struct template t;
    struct buf b;
    char path[TEMPLATE_TARGET_MAX];
    const char *cause;
    size_t n;
    if (template_read(text, &t, &why) != 0) {
        check(why.text[0]);
        return;
    }
    buf_init(&b, 2 * TEMPLATE_TARGET_MAX);
    if (template_write(&t, value, &is, &b, &why) == 0) {
        const char *end = memchr(b.p, '?', b.len);
        struct slice p = { b.p, end ? (size_t)(end - b.p) : b.len };
        check(path_canonical(p, path, sizeof path, &n, &cause) == 0 && n == p.len);
        for (size_t i = 0; i < b.len; i++)
            check(b.p[i] > ' ' && b.p[i] != '#' && b.p[i] != '"');
    } else {
        check(why.text[0]);
    }
    buf_done(&b);
}

static void shape(struct slice text, struct slice json)
{
    static const char *const parts[] = { "a", "b" };
    struct arena a = { .max = 1 << 20 };
    struct shape_node root = { .part = SHAPE_INNER };
    struct firn_diag why = { 0, "" };
    const struct slice v[2] = { json_whole(json.p, json.len), { NULL, 0 } };
    const char *line = arena_copy(&a, text).p;
    struct buf b;
    buf_init(&b, OUT_MAX);
    if (line && shape_add(&root, line, parts, 2, &a, &why) == 0) {
        buf_add(&b, "{", 1);
        shape_write(&root, v, &b);
        buf_add(&b, "}", 1);
        /* The reader takes 16 levels; a value of that depth lies deeper in the answer. */
        check(b.failed || json_whole(b.p, b.len).p || v[0].len > 16);
    } else {
        check(!line || why.text[0] || a.failed);
    }
    buf_done(&b);
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice left = { size ? (const char *)data : "", size };
    struct slice target = part(&left), line = part(&left);
    fill(target, line);
    shape(line, left);
    return 0;
}
