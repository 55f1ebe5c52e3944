/* firn bench firn://...: libfirn-client as the target. */
#include "cli/bench/bench_client.h"
#include "cli/bench/calls.h"
#include "cli/say.h"
#include "wire/url.h"

#include <string.h>

bool bench_client_known(const char *address)
{
    return strncmp(address, "firn://", 7) == 0 || strncmp(address, "firns://", 8) == 0;
}

#ifdef FIRN_HAVE_CLIENT
#include "firn/client.h"

#include <stdio.h>

static int next(void *user, uint64_t *out_id, char why[240])
{
    struct firn_diag d;
    int r = firn_client_next(user, out_id, &d);
    if (r != 0)
        snprintf(why, 240, "%s", d.text);
    return r;
}

/* -1: every host of the address is on this machine; otherwise the status after a message. */
static int check_hosts(const char *url)
{
    struct url_parts parts;
    struct slice one;
    if (!url_split((struct slice){ url, strlen(url) }, &parts))
        return -1; /* the client reports what is wrong with it */
    while (url_host_next(&parts.hosts, &one)) {
        struct host_port h;
        if (host_port_read(one, &h) != HOST_OK)
            continue; /* as above */
        int r = bench_target_is_local(h.host);
        if (r >= 0)
            return r;
    }
    return -1;
}

int bench_client_run(const char *url, bool remote, const struct load_plan *plan,
                     struct load_result *out)
{
    char shown[SAY_TEXT_BUF];
    struct firn_client *c = NULL;
    struct firn_diag d = { 0 };
    int r = remote ? -1 : check_hosts(url);
    if (r >= 0)
        return r;
    if (firn_client_open(url, &c, &d) != 0)
        return say_trouble("%s: %s", say_text(url, strlen(url), shown), d.text);
    r = calls_run(plan, next, c, out);
    firn_client_close(c);
    return r == 0 ? 0 : say_trouble("%s", out->why);
}

#else

int bench_client_run(const char *url, bool remote, const struct load_plan *plan,
                     struct load_result *out)
{
    (void)url, (void)remote, (void)plan, (void)out;
    return say_trouble(
        "this firn was built without libfirn-client, which firn:// addresses need: give "
        "http:// or redis:// addresses");
}
#endif
