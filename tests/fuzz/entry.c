/*
 * Any bytes as the body of a bulk write and as a user: what is taken has no control characters and
 * a detail that is JSON, and reading it again from what was understood gives the same.
 */
#include "auditlog/entry.h"
#include "auditlog/query.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

#include <stdlib.h>

static void check(int ok)
{
    if (!ok)
        abort();
}

static void check_line(struct slice line)
{
    struct firn_diag why = { 0, "" };
    struct entry e, again;
    struct json_reader j;
    struct buf b;
    int r = entry_read(line, &e, &why);
    check(r == 0 || why.text[0]);
    if (r)
        return;
    check(e.actor_len > 0 && e.action_len > 0 && strlen(e.actor) == e.actor_len);
    json_start(&j, e.detail.p, e.detail.len, NULL);
    check(json_next(&j) == JSON_OBJECT && json_skip(&j) == 0 && json_finish(&j) == 0);
    buf_init(&b, 1 << 20);
    json_begin(&b, NULL, '{');
    json_bytes(&b, "actor", e.actor, e.actor_len);
    json_bytes(&b, "action", e.action, e.action_len);
    json_key(&b, "detail");
    buf_add(&b, e.detail.p, e.detail.len);
    json_end(&b, '}');
    check(entry_read((struct slice){ b.p, b.len }, &again, &why) == 0);
    check(strcmp(e.actor, again.actor) == 0 && strcmp(e.action, again.action) == 0);
    check(e.detail.len == again.detail.len);
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct slice all = { (const char *)data, size };
    struct slice rest = all, line;
    struct list_query q;
    struct firn_diag why = { 0, "" };
    char user[USER_BYTES_MAX + 1];
    size_t len;
    while (entry_line_next(&rest, &line))
        check_line(line);
    if (entry_user_read(all, user, &len) == 0)
        check(len > 0 && strlen(user) == len);
    if (list_query_read(all, &q, &why) == 0)
        check(q.limit > 0 && q.limit <= LIST_LIMIT_MAX && q.again[LIST_AGAIN_BUF - 1] == '\0');
    (void)entry_key_valid(all);
    return 0;
}
