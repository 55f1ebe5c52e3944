/* The gateway's Redis: its address and password. Tested in tests/integration/gateway_guards.py. */
#include "proxy/redis_settings.h"
#include "id/diag.h"
#include "proxy/redis.h"
#include "proxy/text_file.h"

#include <ctype.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum { PASSWORD_BYTES_MAX = 1024, PREFIX_BYTES_MAX = 64 };

static const char unix_prefix[] = "unix:/";

static bool is_unix(const char *address)
{
    return strncmp(address, unix_prefix, sizeof unix_prefix - 1) == 0;
}

int redis_address_check(const char *value, struct firn_diag *why)
{
    char show[CONFIG_SHOWN_BUF];
    struct host_port h;
    bool ok = is_unix(value) ? strlen(value) - strlen("unix:") <= REDIS_NAME_MAX
                             : host_port_full(value, &h);
    for (const char *p = h.host; ok && !is_unix(value) && *p; p++)
        ok = isalnum((unsigned char)*p) || strchr(":.%_-", *p); /* no redis://host:port */
    return ok ? 0
              : firn__diag(
                    why, FIRN_EINVAL, 0,
                    "'%s' is no address of a Redis; give host:port, as in 127.0.0.1:6379, or "
                    "unix:/path of at most %d bytes",
                    config_shown(value, show), REDIS_NAME_MAX);
}

int redis_prefix_check(const char *value, struct firn_diag *why)
{
    char show[CONFIG_SHOWN_BUF];
    for (const char *p = value; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr(".:_-", *p))
            return firn__diag(why, FIRN_EINVAL, 0,
                              "'%s' is no prefix; give letters, digits and .:_-, as in shop:",
                              config_shown(value, show));
    return strlen(value) <= PREFIX_BYTES_MAX
               ? 0
               : firn__diag(why, FIRN_EINVAL, 0, "the prefix has more than %d bytes",
                            PREFIX_BYTES_MAX);
}

/* An IP address or a path stays; a name becomes the first address that it has now. */
static int look_up(const char *address, char out[HOST_PORT_BUF], struct firn_diag *diag)
{
    struct host_port h;
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
    char host[NI_MAXHOST];
    if (is_unix(address)) {
        memcpy(out, address, strlen(address) + 1); /* it was checked: it is shorter */
        return 0;
    }
    (void)host_port_full(address, &h);
    int e = getaddrinfo(h.host, NULL, &hints, &list);
    if (e == 0)
        e = getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof host, NULL, 0,
                        NI_NUMERICHOST);
    if (list)
        freeaddrinfo(list);
    if (e)
        return firn__diag(diag, FIRN_EINVAL, 0, "redis.address: '%.80s' cannot be looked up: %s",
                          address, gai_strerror(e));
    host_port_write(host, h.port, out);
    return 0;
}

int redis_password_read(const struct config *c, char **out, struct firn_diag *diag)
{
    size_t len;
    if (!c->redis.password_file)
        return 0;
    int e = text_file_read(c->redis.password_file, PASSWORD_BYTES_MAX, out, &len, diag);
    if (e)
        return e;
    (*out)[strcspn(*out, "\r\n")] = '\0';
    return **out ? 0
                 : firn__diag(diag, FIRN_EINVAL, 0, "redis.password_file: %.120s is empty",
                              c->redis.password_file);
}

int redis_settings_read(const struct config *c, struct redis_settings *out, struct firn_diag *diag)
{
    out->prefix = c->redis.prefix ? c->redis.prefix : "";
    if (!c->redis.address)
        return 0;
    int e = look_up(c->redis.address, out->address, diag);
    return e ? e : redis_password_read(c, &out->password, diag);
}

void redis_settings_free(struct redis_settings *s)
{
    free(s->password);
}
