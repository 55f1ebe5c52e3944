#include "cli/watch/findings.h"
#include "t.h"

#include <stdio.h>

static struct findings found;

static struct top_node server(const char *url, const char *store, const char *start, int64_t slot)
{
    struct top_node n = { .asked = true, .up = true };
    snprintf(n.url, sizeof n.url, "%s", url);
    snprintf(n.last.clock, sizeof n.last.clock, "ok");
    snprintf(n.last.version, sizeof n.last.version, "1.0");
    snprintf(n.last.face.store, sizeof n.last.face.store, "%s", store);
    snprintf(n.last.face.start, sizeof n.last.face.start, "%s", start);
    n.last.slot = n.last.face.slot = slot;
    n.last.ready = n.last.face.ready = true;
    return n;
}

static const struct finding *about(const char *what)
{
    for (size_t i = 0; i < found.n; i++)
        if (strcmp(found.f[i].about, what) == 0)
            return &found.f[i];
    return NULL;
}

T_TEST(findings_of_healthy_servers)
{
    struct top_node n[] = { server("http://a", "s", "1", 7), server("http://b", "s", "2", 8) };
    findings_of(n, 2, &found);
    T_EQ(found.n, 0);
    T_OK(!findings_clash(n, 2));
}

T_TEST(findings_of_two_with_one_slot)
{
    struct top_node n[] = { server("http://a", "s", "1", 7), server("http://b", "t", "2", 7) };
    T_OK(findings_clash(n, 2));
    findings_of(n, 2, &found);
    T_EQ(found.bad, 1);
    T_OK(about("slot") && strstr(about("slot")->text, "of another store"));
    T_OK(about("store")->level == FINDING_NOTE);
    n[1] = server("http://b", "s", "2", 7);
    findings_of(n, 2, &found);
    T_OK(about("slot") && strstr(about("slot")->text, "a copy of the same store"));
    n[1] = server("http://b", "s", "1", 7); /* two URLs of one process */
    findings_of(n, 2, &found);
    T_EQ(found.bad, 0);
    T_OK(strstr(about("server")->text, "leave one URL out"));
    n[1].up = false;
    T_OK(!findings_clash(n, 2));
}

T_TEST(findings_of_each_server)
{
    struct top_node n[] = { server("http://a", "s", "1", 7), server("http://b", "s", "2", 8) };
    n[0].up = false;
    snprintf(n[0].why, sizeof n[0].why, "Connection refused");
    snprintf(n[1].last.clock, sizeof n[1].last.clock, "wait");
    snprintf(n[1].last.reason, sizeof n[1].last.reason, "no slot yet");
    n[1].last.ready = false;
    n[1].last.unix_us = 1;
    n[1].skew_us = -5000000;
    n[1].last.store_errors = 3;
    findings_of(n, 2, &found);
    T_EQ(found.n, 5);
    T_EQ(found.bad, 3);
    T_OK(strstr(about("server")->text, "Connection refused"));
    T_OK(strstr(about("ready")->text, "no slot yet"));
    T_OK(strstr(about("clock")->text, "not plausible"));
    T_OK(strstr(about("store")->text, "3 calls"));
}

T_TEST(findings_of_servers_that_differ)
{
    struct top_node n[] = { server("http://a", "s", "1", 7), server("http://b", "t", "2", 8),
                            server("http://c", "s", "3", 9) };
    snprintf(n[2].last.version, sizeof n[2].last.version, "2.0");
    n[2].last.face.layout[0] = 'x';
    findings_of(n, 3, &found);
    T_EQ(found.n, 3);
    T_EQ(about("store")->node, 1);
    T_EQ(about("version")->node, 2);
    T_EQ(about("layout")->level, FINDING_BAD);
}
