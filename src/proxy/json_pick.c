/* Values inside of a JSON text. Tested in tests/unit/proxy/json_pick.c. */
#include "proxy/json_pick.h"

static const struct slice absent = { NULL, 0 };

/* The value that the reader stands in front of. */
static struct slice take(struct json_reader *j)
{
    if (json_next(j) == JSON_OTHER)
        return absent;
    const char *from = j->p;
    return json_skip(j) == 0 ? (struct slice){ from, (size_t)(j->p - from) } : absent;
}

struct slice json_whole(const char *p, size_t len)
{
    struct json_reader j;
    json_start(&j, len ? p : "", len, NULL);
    struct slice v = take(&j);
    return v.p && json_finish(&j) == 0 ? v : absent;
}

enum json_type json_type_of(struct slice value)
{
    struct json_reader j;
    if (!value.p)
        return JSON_OTHER;
    json_start(&j, value.p, value.len, NULL);
    return json_next(&j);
}

struct slice json_pick(struct slice value, const char *name)
{
    struct json_reader j;
    struct slice v;
    enum json_type type = json_type_of(value);
    if (type == JSON_OBJECT) {
        json_start(&j, value.p, value.len, NULL);
        return json_object(&j) == 0 && json_find(&j, name) > 0 ? take(&j) : absent;
    }
    if (type != JSON_ARRAY || !*name || strlen(name) > 6)
        return absent;
    size_t at = 0, place = 0;
    for (const char *c = name; *c; c++) {
        if (*c < '0' || *c > '9')
            return absent;
        at = 10 * at + (size_t)(*c - '0');
    }
    while (json_each_element(value, &place, &v))
        if (at-- == 0)
            return v;
    return absent;
}

bool json_each_element(struct slice array, size_t *place, struct slice *out)
{
    struct json_reader j;
    if (json_type_of(array) != JSON_ARRAY)
        return false;
    if (*place == 0) {
        json_start(&j, array.p, array.len, NULL);
        if (json_array(&j) != 0 || json_element(&j) <= 0)
            return false;
    } else { /* behind an element: a comma, or the end */
        json_start(&j, array.p + *place, array.len - *place, NULL);
        (void)json_next(&j);
        if (j.p == j.end || *j.p != ',')
            return false;
        j.p++;
    }
    *out = take(&j);
    *place = (size_t)(j.p - array.p);
    return out->p != NULL;
}

bool json_as_text(struct slice value, struct buf *out)
{
    struct json_reader j;
    enum json_type type = json_type_of(value);
    if (type == JSON_NUMBER || type == JSON_BOOL) {
        buf_add(out, value.p, value.len);
        return !out->failed;
    }
    char *to = type == JSON_STRING ? buf_room(out, value.len + 1) : NULL;
    size_t len;
    if (!to)
        return false;
    json_start(&j, value.p, value.len, NULL);
    if (json_string(&j, to, value.len + 1, &len) != 0)
        return false;
    buf_commit(out, len);
    return true;
}
