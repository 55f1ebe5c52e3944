/* The load balancer of firn up: finds haproxy or nginx and writes its configuration. */
#include "cli/up/balancer.h"
#include "cli/say.h"
#include "cli/up/machine.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool balancer_find(struct balancer *b, const char *name)
{
    static const char *const names[] = { "haproxy", "nginx" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((!name || strcmp(name, names[i]) == 0) && machine_find(names[i], b->program)) {
            b->name = names[i];
            return true;
        }
    return false;
}

/* nginx proxies TCP with a module that Debian packages separately. */
static bool nginx_has_stream(void)
{
    glob_t found = { 0 };
    bool has = glob("/etc/nginx/modules-enabled/*stream.conf", 0, NULL, &found) == 0;
    globfree(&found);
    return has;
}

static void put_nginx(FILE *to, const struct balancer *b, const char *dir, uint32_t base)
{
    static const char begin[] = "\nhttp {\n", stream[] = "\nstream {\n";
    static const char *const kinds[] = { "client_body", "proxy", "fastcgi", "uwsgi", "scgi" };
    const char *p = (const char *)balancer_nginx;
    size_t len = balancer_nginx_len;
    const char *http = memmem(p, len, begin, sizeof begin - 1);
    const char *cut = b->resp ? NULL : memmem(p, len, stream, sizeof stream - 1);
    size_t head = http ? (size_t)(http - p) + sizeof begin - 1 : 0;
    machine_put_moved(to, p, head, base, NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        fprintf(to, "    %s_temp_path %s/nginx-%s;\n", kinds[i], dir, kinds[i]);
    machine_put_moved(to, p + head, (cut ? (size_t)(cut + 1 - p) : len) - head, base, NULL);
}

int balancer_prepare(struct balancer *b, const char *dir, uint32_t base)
{
    bool haproxy = strcmp(b->name, "haproxy") == 0;
    snprintf(b->config, sizeof b->config, "%.4000s/%s", dir,
             haproxy ? "haproxy.cfg" : "nginx.conf");
    FILE *to = fopen(b->config, "w");
    if (!to) {
        say_trouble("cannot write %s: %s", b->config, strerror(errno));
        return -1;
    }
    b->resp = haproxy || nginx_has_stream();
    if (haproxy)
        machine_put_moved(to, (const char *)balancer_haproxy, balancer_haproxy_len, base, NULL);
    else
        put_nginx(to, b, dir, base);
    if (fclose(to) != 0) {
        say_trouble("cannot write %s: %s", b->config, strerror(errno));
        return -1;
    }
    snprintf(b->own_log, sizeof b->own_log, "%.4000s/nginx-error.log", dir);
    snprintf(b->globals, sizeof b->globals,
             "daemon off; pid %.4000s/nginx.pid; error_log %.4000s/nginx-error.log error;", dir,
             dir);
    const char *const haproxy_argv[] = { b->program, "-db", "-f", b->config, NULL };
    const char *const nginx_argv[] = { b->program, "-c", b->config,  "-e",
                                       b->own_log, "-g", b->globals, NULL };
    memcpy(b->argv, haproxy ? haproxy_argv : nginx_argv,
           haproxy ? sizeof haproxy_argv : sizeof nginx_argv);
    return 0;
}
