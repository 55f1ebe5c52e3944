/* Compositions in the configuration: what is read, printed again, and refused. */
#include "daemon/config_entries.h"
#include "daemon/config_in.h"
#include "proxy/composition.h"
#include "t.h"

#include <stdlib.h>

static struct firn_diag diag;

static int load(struct config *c, const char *yaml)
{
    *c = (struct config){ .base = { .program = &proxy_config, .file = strdup("x.yaml") } };
    diag.text[0] = '\0';
    return config_yaml_read(&c->base, yaml, strlen(yaml), &diag);
}

T_TEST(composition_is_read)
{
    struct config c;
    struct composition m;
    struct composition_source s;
    struct slice rest[COMPOSITION_REST_MAX];
    const char *key;
    T_EQ(load(&c,
              "compositions:\n"
              "  - name: a\n    rest: /of/{user}/{n}\n    timeout_ms: 7\n    required: [u]\n"
              "    parts: ['u = users GET /u/{user}?n={2}', 'v=users /v/{u.x.y}?h={header:X-A}']\n"
              "    shape: ['x = u.x', 'y = v {z}']\n"),
         0, "%s", diag.text);
    T_EQ(composition_make(&c.compositions.v[0], &m, &key, &diag), 0, "%s", diag.text);
    T_EQ(m.n, 2);
    T_EQ(m.part[0].needs, 0);
    T_EQ(m.part[1].needs, 1);
    T_OK(m.part[0].required && !m.part[1].required);
    T_STR(m.part[1].service, "users");
    T_EQ(composition_source(&m, (struct slice){ "2", 1 }, &s), 0);
    T_OK(s.from == COMPOSITION_REST && s.index == 2);
    T_EQ(composition_source(&m, (struct slice){ "3", 1 }, &s), FIRN_EFORMAT);
    static const struct {
        const char *path;
        bool good;
    } row[] = { { "/of/7/8", true },    { "/of/7/8/", true },  { "/of/7", false },
                { "/of/7/8/9", false }, { "/in/7/8", false },  { "", false },
                { "/of//8", false },    { "/of/7/8//", false } };
    for (size_t i = 0; i < T_LEN(row); i++)
        T_EQ(composition_rest(&m, (struct slice){ row[i].path, strlen(row[i].path) }, rest),
             row[i].good, "%s", row[i].path);
    composition_free(&m);
    /* What is printed reads as the same. */
    char *text = NULL, *again = NULL;
    size_t size;
    struct config d;
    FILE *f = open_memstream(&text, &size);
    fputs("compositions: ", f);
    entries_write(&config_compositions_type, &c.compositions, f);
    fclose(f);
    T_EQ(load(&d, text), 0, "%s in %s", diag.text, text);
    f = open_memstream(&again, &size);
    fputs("compositions: ", f);
    entries_write(&config_compositions_type, &d.compositions, f);
    fclose(f);
    T_STR(text, again);
    free(text);
    free(again);
    config_free(&c.base);
    config_free(&d.base);
}

T_TEST(composition_refuses)
{
    static const struct {
        const char *yaml, *says;
    } row[] = {
        { "{ name: a }", "parts: give 1 to 16 parts" },
        { "{ name: a, parts: [x] }", "write NAME = SERVICE /TARGET" },
        { "{ name: a, parts: ['x = s POST /y'] }", "write NAME = SERVICE /TARGET" },
        { "{ name: a, parts: ['x = s /y', 'x = s /z'] }", "the part 'x' is there twice" },
        { "{ name: a, parts: ['x = s /{y}'] }", "{y} is no segment of rest:" },
        { "{ name: a, parts: ['x = s /{x.id}'] }", "{x.id} is no segment of rest:" },
        { "{ name: a, parts: ['x.y = s /y'] }", "a part's name has no '.'" },
        { "{ name: a, parts: ['x = s /a/../y'] }", "not canonical" },
        { "{ name: a, parts: ['x = s /y'], rest: 'user' }", "a target begins with '/'" },
        { "{ name: a, parts: ['x = s /y'], rest: '/a{user}' }", "a segment is a text or one name" },
        { "{ name: a, parts: ['x = s /y'], shape: ['z = w'] }", "the name of a part" },
        { "{ name: a, parts: ['x = s /y'], shape: ['errors = x'] }", "the member 'errors'" },
        { "{ name: a, parts: ['x = s /y'], required: [z] }", "there is no part 'z'" },
        { "{ name: a, parts: ['x = s /y'], part_bytes: 1 }", "'1' is no number from 1024" },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct config c;
        char yaml[256];
        snprintf(yaml, sizeof yaml, "compositions:\n  - %s\n", row[i].yaml);
        T_OK(load(&c, yaml) != 0, "%s", row[i].yaml);
        T_OK(strstr(diag.text, row[i].says), "%s: %s", row[i].yaml, diag.text);
        config_free(&c.base);
    }
}
