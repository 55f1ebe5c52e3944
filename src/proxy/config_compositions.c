/*
 * The setting `compositions`: the table of their keys. A new key is a member of struct
 * config_composition and a row. Tested in tests/unit/proxy/composition.c.
 */
#include "proxy/composition.h"
#include "proxy/config_fields.h"

#include <string.h>

static int check_composition(const struct entry_reader *r, void *entry)
{
    struct firn_diag d = { 0, "" };
    struct composition c;
    const char *key;
    int e = composition_make(entry, &c, &key, &d);
    if (e == 0)
        composition_free(&c);
    return e == 0 ? 0 : e == FIRN_ENOMEM ? entry_no_memory(r) : entry_blame(r, key, "%s", d.text);
}

static bool has_service(const struct config *c, const char *name)
{
    size_t k = 0;
    while (k < c->services.n && strcmp(c->services.v[k].name, name) != 0)
        k++;
    return k < c->services.n;
}

static int check_services(const struct config *c, const struct config_composition *of,
                          struct firn_diag *diag)
{
    struct config_at at = { "compositions", of, "parts", 0 };
    const char *key;
    struct composition made;
    int e = composition_make(of, &made, &key, diag);
    for (; e == 0 && at.item < made.n; at.item++)
        if (!has_service(c, made.part[at.item].service))
            e = config_fault_name(&c->base, &at, "services", "service", made.part[at.item].service,
                                  diag);
    composition_free(&made);
    return e;
}

int config_check_compositions(const struct config *c, struct firn_diag *diag)
{
    int e = 0;
    for (size_t i = 0; i < c->compositions.n && e == 0; i++)
        e = check_services(c, &c->compositions.v[i], diag);
    for (size_t i = 0; i < c->routes.n && e == 0; i++) {
        const struct config_route *r = &c->routes.v[i];
        size_t k = 0;
        while (r->compose && k < c->compositions.n &&
               strcmp(c->compositions.v[k].name, r->compose) != 0)
            k++;
        if (r->compose && k == c->compositions.n)
            e = config_fault_name(&c->base, &(struct config_at){ "routes", r, "compose", 0 },
                                  "compositions", "composition", r->compose, diag);
    }
    return e;
}

enum { HOUR = 3600000, KIB = 1024, MIB = 1024 * 1024 };

#define AT(field) .offset = offsetof(struct config_composition, field)

static const struct entry_key keys[] = {
    { "name", &entry_text, AT(name), .check = entry_check_name },
    { "rest", &entry_text, AT(rest) },
    { "parts", &entry_texts, AT(parts) },
    { "required", &entry_texts, AT(required) },
    { "shape", &entry_texts, AT(shape) },
    { "timeout_ms", &entry_u32, AT(timeout_ms), 1, HOUR, 5000 },
    { "part_bytes", &entry_u32, AT(part_bytes), KIB, 16 * MIB, MIB },
    { "answer_bytes", &entry_u32, AT(answer_bytes), KIB, 64 * MIB, 4 * MIB },
};

const struct setting_entries config_compositions_type = { keys, sizeof keys / sizeof keys[0],
                                                          sizeof(struct config_composition), NULL,
                                                          check_composition };
