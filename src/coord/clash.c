/* Whether two nodes clash, and which one yields (clash.h). Tests: tests/unit/coord/clash.c. */
#include "coord/clash.h"

#include <string.h>

enum { LOOKS_SURE = 2, LOOKS_PATIENT = 5 };

bool faces_clash(const struct node_face *a, const struct node_face *b)
{
    return a->ready && b->ready && a->slot >= 0 && a->slot == b->slot && a->start[0] &&
           b->start[0] && strcmp(a->start, b->start) != 0 && strcmp(a->layout, b->layout) == 0;
}

bool face_yields(const struct node_face *mine, const struct node_face *theirs, unsigned looks)
{
    bool first = strcmp(mine->start, theirs->start) > 0;
    return faces_clash(mine, theirs) && looks >= (first ? LOOKS_SURE : LOOKS_PATIENT);
}
