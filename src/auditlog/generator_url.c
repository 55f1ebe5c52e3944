/* URLs of generators. Tested in tests/unit/auditlog/config.c. */
#include "auditlog/generator_url.h"
#include "id/diag.h"

enum { PORT_DEFAULT = 9001 };

int generator_url_read(const char *url, struct host_port *out, struct firn_diag *diag)
{
    struct url_parts u;
    bool ok = url_split((struct slice){ url, strlen(url) }, &u) && slice_is(u.scheme, "http") &&
              !u.user.p && !u.query.p && u.path.len == 0 && !memchr(u.hosts.p, ',', u.hosts.len);
    if (!ok || host_port_read(u.hosts, out) != HOST_OK)
        return firn__diag(diag, FIRN_EFORMAT, 0,
                          "a generator is the URL of a firnd, as in http://10.0.0.1:9001");
    if (!out->has_port)
        out->port = PORT_DEFAULT;
    return 0;
}
