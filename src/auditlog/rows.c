/* Rows as JSON. Tested in tests/unit/auditlog/rows.c. */
#include "auditlog/rows.h"
#include "auditlog/audit_id.h"
#include "wire/json_write.h"

void row_write(struct buf *b, const struct shown_row *r)
{
    json_begin(b, NULL, '{');
    json_id(b, "id", r->id);
    if (!r->legacy)
        json_count(b, "shard", audit_id_shard(r->id));
    json_bytes(b, "user", r->user.p, r->user.len);
    json_bytes(b, "actor", r->actor.p, r->actor.len);
    json_bytes(b, "action", r->action.p, r->action.len);
    json_time(b, "at", r->at_us);
    json_key(b, "detail");
    buf_add(b, r->detail.p, r->detail.len);
    json_count(b, "map_version", r->map_version);
    json_end(b, '}');
    buf_add(b, "\n", 1);
}

void rows_page(struct buf *b, struct slice lines, uint64_t next)
{
    json_begin(b, NULL, '{');
    json_key(b, "entries");
    buf_add(b, "[", 1);
    while (lines.len > 0) {
        const char *end = memchr(lines.p, '\n', lines.len);
        const size_t len = end ? (size_t)(end - lines.p) : lines.len, used = end ? len + 1 : len;
        buf_add(b, lines.p, len);
        lines = (struct slice){ lines.p + used, lines.len - used };
        if (lines.len > 0)
            buf_add(b, ",", 1);
    }
    buf_add(b, "]", 1);
    if (next)
        json_id(b, "next", next);
    else
        json_null(b, "next");
    json_end(b, '}');
    buf_add(b, "\n", 1);
}
