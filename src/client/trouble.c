/* Why this thread's last call failed: a sentence that is too long for a struct firn_diag. */
#include "client/parts.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char said[TROUBLE_BUF + 256];

void trouble_say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(said, sizeof said, fmt, ap);
    va_end(ap);
}

const char *firn_client_trouble(void)
{
    return said;
}
