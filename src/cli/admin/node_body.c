/* Reads the members of a cluster of firnds out of an answer of GET /v1/nodes. */
#include "cli/admin/node_body.h"
#include "wire/json_read.h"

/* Printable ASCII, because a terminal shows it. */
static int text(struct json_reader *j, char *out, size_t size)
{
    int r = json_string(j, out, size, NULL);
    for (const char *p = out; r == 0 && *p; p++)
        if (*p < ' ' || *p > '~')
            r = FIRN_EFORMAT;
    return r;
}

static int member(struct json_reader *j, const char *name, struct node_row *r)
{
    const struct {
        const char *name;
        char *text;
        size_t size;
        uint64_t *number;
    } known[] = {
        { "number", NULL, 0, &r->number },
        { "name", r->name, sizeof r->name, NULL },
        { "address", r->address, sizeof r->address, NULL },
        { "slots", r->slots, sizeof r->slots, NULL },
        { "version", r->version, sizeof r->version, NULL },
        { "kind", r->kind, sizeof r->kind, NULL },
        { "state", r->state, sizeof r->state, NULL },
        { "age_ms", NULL, 0, &r->age_ms },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].text ? text(j, known[i].text, known[i].size)
                                 : json_u64(j, known[i].number);
    return json_skip(j);
}

static int node(struct json_reader *j, struct node_row *row)
{
    char name[32];
    unsigned members = 0;
    int r = json_object(j);
    for (; r == 0 && (r = json_member(j, name, sizeof name)) > 0; members++)
        r = member(j, name, row);
    return r == 0 && members == 0 ? FIRN_EFORMAT : r;
}

int node_body_each(const char *p, size_t len, node_row_fn *each, void *user)
{
    struct json_reader j;
    char name[8];
    json_start(&j, p, len, NULL);
    if (json_object(&j) != 0 || json_member(&j, name, sizeof name) != 1 ||
        strcmp(name, "nodes") != 0 || json_array(&j) != 0)
        return FIRN_EFORMAT;
    int r;
    while ((r = json_element(&j)) > 0) {
        struct node_row row = { 0 };
        if (node(&j, &row) != 0)
            return FIRN_EFORMAT;
        each(user, &row);
    }
    return r == 0 && json_member(&j, name, sizeof name) == 0 && json_finish(&j) == 0 ? 0
                                                                                     : FIRN_EFORMAT;
}
