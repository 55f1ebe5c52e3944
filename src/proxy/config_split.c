/* The keys `split` and `split_by` of a route. Tested in tests/unit/proxy/config.c. */
#include "proxy/config_split.h"
#include "proxy/config.h"
#include "proxy/config_fields.h"
#include "wire/http_line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_MAX = 1000 };

static int read_part(const struct entry_reader *r, const struct entry_key *k, const char *text,
                     struct config_split_part *out)
{
    char show[CONFIG_SHOWN_BUF];
    size_t n = strcspn(text, " ");
    const char *rest = text + n + strspn(text + n, " ");
    uint64_t weight;
    if (n == 0 || http_u64((struct slice){ rest, strlen(rest) }, WEIGHT_MAX, &weight) != 0)
        return entry_blame(r, k->name, "'%s': write the service and its share, as in 'shop-v1 90'",
                           config_shown(text, show));
    out->weight = (uint32_t)weight;
    out->service = strndup(text, n);
    return out->service ? 0 : entry_no_memory(r);
}

static int read_split(const struct entry_reader *r, const struct entry_key *k,
                      const struct config_strings *from, void *at)
{
    struct config_split *s = at;
    uint64_t sum = 0;
    int e = 0;
    if (from->n == 0)
        return 0;
    if (from->n > CONFIG_SPLIT_MAX)
        return entry_blame(r, k->name, "there are more than %d", CONFIG_SPLIT_MAX);
    s->v = calloc(from->n, sizeof *s->v);
    if (!s->v)
        return entry_no_memory(r);
    for (; e == 0 && s->n < from->n; s->n++) {
        e = read_part(r, k, from->v[s->n], &s->v[s->n]);
        sum += s->v[s->n].weight;
    }
    return e || sum > 0 ? e : entry_blame(r, k->name, "all shares are 0");
}

static bool split_is_set(const void *at)
{
    return ((const struct config_split *)at)->n > 0;
}

static void write_split(const struct entry_key *k, const void *at, FILE *out)
{
    const struct config_split *s = at;
    (void)k;
    for (size_t i = 0; i < s->n; i++)
        fprintf(out, "%s\"%s %u\"", i ? ", " : "[", s->v[i].service, s->v[i].weight);
    fputc(']', out);
}

static void free_split(void *at)
{
    struct config_split *s = at;
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].service);
    free(s->v);
}

const struct entry_type config_split_type = { true, read_split, split_is_set, write_split,
                                              free_split };

int config_check_split_by(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    char show[CONFIG_SHOWN_BUF];
    const bool header = strncmp(text, "header:", 7) == 0, cookie = strncmp(text, "cookie:", 7) == 0;
    if (strcmp(text, "address") == 0 || strcmp(text, "user") == 0 ||
        ((header || cookie) && config_all_are(text + 7, HTTP_TOKEN))) {
        for (char *p = text + 7; header && *p; p++)
            *p = (char)tolower((unsigned char)*p);
        return 0;
    }
    return entry_blame(r, k->name, "'%s' is none of address, user, header:NAME and cookie:NAME",
                       config_shown(text, show));
}
