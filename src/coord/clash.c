/* Whether two nodes clash, and which one yields (clash.h). Tests: tests/unit/coord/clash.c. */
#include "coord/clash.h"

#include <string.h>

enum { LOOKS_SURE = 2, LOOKS_PATIENT = 5 };

bool face_yields(const struct node_face *mine, const struct node_face *theirs, unsigned looks)
{
    bool first = strcmp(mine->start, theirs->start) > 0;
    return faces_clash(mine, theirs) && looks >= (first ? LOOKS_SURE : LOOKS_PATIENT);
}
