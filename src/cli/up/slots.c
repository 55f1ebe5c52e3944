/*
 * Whether two members stamp one slot. Leases keep apart what is on one store; this asks what
 * answers on the members' ports, as firn doctor does, because it may be another server on another
 * store. Tested in tests/integration/up.py.
 */
#include "cli/say.h"
#include "cli/up/site.h"
#include "cli/watch/top_node.h"

#include <string.h>

enum { LOOKS = 2 }; /* a slot may go from one to the other between two requests */

void site_watch_slots(struct site *s)
{
    struct top_sample now[SITE_MEMBERS] = { 0 };
    char said[SITE_STATUS_BUF];
    bool clash = false;
    for (size_t i = 0; i < SITE_MEMBERS; i++) {
        if (!site_fetch(site_port(s, i + 1, PORT_HOME), "/v1/node", said) ||
            top_read_node(said, strlen(said), &now[i]) != 0)
            continue;
        for (size_t k = 0; k < i; k++) {
            if (!faces_clash(&now[k].face, &now[i].face))
                continue;
            clash = true;
            if (s->clashes + 1 == LOOKS)
                say_warning("%s and what answers on port %u both use slot %lld: IDs come twice. "
                            "Stop the one that is not of this site; firn doctor names them",
                            s->child[k].name, site_port(s, i + 1, PORT_HOME),
                            (long long)now[i].face.slot);
        }
    }
    s->clashes = clash ? s->clashes + 1 : 0;
}
