/* A member of firn up whose folder is gone: it joins the cluster again as a new member. */
#include "cli/up/site.h"
#include "cli/say.h"
#include "platform/mono.h"
#include "wire/json_write.h"

#include <stdio.h>
#include <string.h>

enum {
    JOIN_MS = 30 * 1000,   /* for the members that have data to elect a leader, too */
    REMOVE_MS = 10 * 1000, /* for a member to be taken out of the cluster */
};

/* The id of the member with this peer address, from the status as lines; false: there is none. */
static bool id_at(const char *status, const char *address, char out[17])
{
    char field[SITE_ADDRESS_BUF + 2];
    snprintf(field, sizeof field, "\t%s\t", address);
    const char *at = strstr(status, field);
    if (!at || at - status < 16)
        return false;
    memcpy(out, at - 16, 16);
    out[16] = '\0';
    return true;
}

static bool remove_member(const struct site *s, size_t by, const char *id)
{
    char url[128];
    const char *body;
    size_t len;
    struct http_client c;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/v1/cluster", site_port(s, by + 1, PORT_HOME));
    struct buf post;
    buf_init(&post, 256);
    json_begin(&post, NULL, '{');
    json_text(&post, "action", "remove");
    json_text(&post, "id", id);
    json_end(&post, '}');
    buf_add(&post, "", 1);
    bool good = http_client_init(&c, url) == 0 && !post.failed;
    c.post = post.p;
    c.timeout_ms = REMOVE_MS;
    good = good && http_client_post(&c, &body, &len) == 0;
    http_client_done(&c);
    buf_done(&post);
    return good;
}

bool site_may_join(const struct site *s, size_t i)
{
    char status[SITE_STATUS_BUF], id[17];
    if (s->fresh || s->o->store || s->member[i].known)
        return true;
    for (size_t k = 0; k < SITE_MEMBERS; k++)
        if (k != i && s->child[k].pid &&
            site_fetch(site_port(s, k + 1, PORT_HOME), "/v1/cluster", status) &&
            strstr(status, ", leader\t"))
            return !id_at(status, s->member[i].address[PORT_PEERS], id) || remove_member(s, k, id);
    return false;
}

int site_start_joining(struct site *s, size_t i)
{
    uint64_t end = mono_ms() + JOIN_MS;
    while (!site_may_join(s, i)) {
        if (site_stopped(s, 50))
            return STATUS_OK;
        if (mono_ms() > end)
            return say_trouble(
                "%s has no data and cannot join: the members that have data have no leader. If "
                "more than one folder is gone, see Backup and restore in docs/cluster.md; logs are "
                "in %s",
                s->member[i].name, s->dir);
    }
    return child_start(&s->child[i]) == 0 ? -1 : STATUS_TROUBLE;
}
