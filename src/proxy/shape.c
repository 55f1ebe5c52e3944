/* Shapes of composed answers. Tested in tests/unit/proxy/shape.c. */
#include "proxy/shape.h"
#include "id/diag.h"
#include "proxy/json_pick.h"
#include "wire/json_write.h"

#include <ctype.h>

struct line { /* what is left of it */
    const char *p, *start;
    struct arena *a;
    struct firn_diag *why;
};

static int blame(const struct line *l, const char *what)
{
    return firn__diag(l->why, FIRN_EFORMAT, (size_t)(l->p - l->start) + 1, "%s (at character %zu)",
                      what, (size_t)(l->p - l->start) + 1);
}

static void space(struct line *l)
{
    l->p += strspn(l->p, " \t");
}

static bool take(struct line *l, char c)
{
    space(l);
    if (*l->p != c)
        return false;
    l->p++;
    return true;
}

static int name(struct line *l, const char **out)
{
    space(l);
    const char *from = l->p;
    while (isalnum((unsigned char)*l->p) || *l->p == '_' || *l->p == '-' || *l->p == '$' ||
           *l->p == '@')
        l->p++;
    if (l->p == from)
        return blame(l, "a name is expected here");
    *out = arena_copy(l->a, (struct slice){ from, (size_t)(l->p - from) }).p;
    return *out ? 0 : FIRN_ENOMEM;
}

static int path(struct line *l, const char **out, size_t *out_n)
{
    int e = 0;
    *out_n = 0;
    do {
        if (*out_n == SHAPE_DEPTH_MAX)
            return blame(l, "the path is too long");
        e = name(l, &out[(*out_n)++]);
    } while (e == 0 && *l->p == '.' && l->p++);
    return e;
}

static int own_path(struct line *l, struct shape_node *n, const char *const *from, size_t count)
{
    n->path = arena_get(l->a, (count + 1) * sizeof *n->path);
    if (!n->path)
        return FIRN_ENOMEM;
    if (count)
        memcpy(n->path, from, count * sizeof *n->path);
    n->path_n = count;
    return 0;
}

static struct shape_node *member(const struct shape_node *of, const char *want)
{
    for (struct shape_node *n = of->child; n; n = n->next)
        if (strcmp(n->name, want) == 0)
            return n;
    return NULL;
}

static struct shape_node *append(struct arena *a, struct shape_node *to, const char *called)
{
    struct shape_node **at = &to->child;
    while (*at)
        at = &(*at)->next;
    *at = arena_get(a, sizeof **at);
    if (*at)
        (*at)->name = called;
    return *at;
}

/* "{a, b = x.y, c {d}}" */
static int select_members(struct line *l, struct shape_node *to, unsigned depth)
{
    const char *p[SHAPE_DEPTH_MAX];
    size_t n;
    if (!take(l, '{'))
        return 0;
    if (depth == SHAPE_DEPTH_MAX)
        return blame(l, "braces are nested too deeply");
    do {
        const char *called;
        int e = name(l, &called);
        if (e)
            return e;
        if (member(to, called))
            return blame(l, "this name is there twice");
        struct shape_node *m = append(l->a, to, called);
        p[0] = called;
        n = 1;
        if (m && take(l, '='))
            e = path(l, p, &n);
        if (!m)
            e = FIRN_ENOMEM;
        if (e == 0)
            e = own_path(l, m, p, n);
        if (e == 0)
            e = select_members(l, m, depth + 1);
        if (e)
            return e;
    } while (take(l, ','));
    return take(l, '}') ? 0 : blame(l, "a comma or } is expected here");
}

/* The place in the answer; objects on the way are made. */
static int target(struct line *l, struct shape_node *root, struct shape_node **out)
{
    const char *p[SHAPE_DEPTH_MAX];
    size_t n;
    int e = path(l, p, &n);
    for (size_t i = 0; e == 0 && i < n; i++) {
        struct shape_node *m = member(root, p[i]);
        if (m && (i + 1 == n || m->part != SHAPE_INNER))
            return blame(l, "this place in the answer has a value already");
        if (!m && (m = append(l->a, root, p[i])) != NULL)
            m->part = SHAPE_INNER;
        if (!m)
            return FIRN_ENOMEM;
        root = m;
    }
    *out = root;
    return e;
}

int shape_add(struct shape_node *root, const char *text, const char *const *parts, size_t parts_n,
              struct arena *a, struct firn_diag *why)
{
    struct line l = { text, text, a, why };
    const char *p[SHAPE_DEPTH_MAX];
    struct shape_node *to = root;
    size_t n, part = 0;
    int e = target(&l, root, &to);
    if (e == 0 && !take(&l, '='))
        return blame(&l, "write PLACE = PART.PATH, as in 'name = user.name'");
    if (e == 0)
        e = path(&l, p, &n);
    if (e)
        return e;
    while (part < parts_n && strcmp(parts[part], p[0]) != 0)
        part++;
    if (part == parts_n)
        return blame(&l, "the path must begin with the name of a part");
    to->part = part;
    e = own_path(&l, to, p + 1, n - 1);
    if (e == 0)
        e = select_members(&l, to, 0);
    space(&l);
    return e ? e : *l.p ? blame(&l, "something follows the path") : 0;
}

/* --- writing --- */

static struct slice follow(const struct shape_node *n, struct slice value)
{
    for (size_t i = 0; value.p && i < n->path_n; i++)
        value = json_pick(value, n->path[i]);
    return value;
}

static void put(const struct shape_node *n, const char *key, struct slice value, struct buf *out)
{
    struct slice element;
    size_t place = 0;
    enum json_type type = json_type_of(value);
    if (out->failed)
        return;
    if (type == JSON_OTHER || (n->child && type != JSON_OBJECT && type != JSON_ARRAY)) {
        json_null(out, key);
    } else if (!n->child) {
        json_key(out, key);
        buf_add(out, value.p, value.len);
    } else if (type == JSON_ARRAY) {
        json_begin(out, key, '[');
        while (!out->failed && json_each_element(value, &place, &element))
            put(n, NULL, element, out);
        json_end(out, ']');
    } else {
        json_begin(out, key, '{');
        for (const struct shape_node *m = n->child; m; m = m->next)
            put(m, m->name, follow(m, value), out);
        json_end(out, '}');
    }
}

void shape_write(const struct shape_node *root, const struct slice *values, struct buf *out)
{
    for (const struct shape_node *n = root->child; n; n = n->next) {
        if (n->part != SHAPE_INNER) {
            put(n, n->name, follow(n, values[n->part]), out);
            continue;
        }
        json_begin(out, n->name, '{');
        shape_write(n, values, out);
        json_end(out, '}');
    }
}
