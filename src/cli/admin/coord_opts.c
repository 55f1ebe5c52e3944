/* Options of the coordination commands: the name of this process. */
#include "cli/admin/coord_opts.h"
#include "cli/say.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool coord_name(const char *given, char out[RECORD_NAME_MAX + 1])
{
    char host[RECORD_NAME_MAX - 11] = "", shown[SAY_TEXT_BUF];
    if (given) {
        if (!record_user_name_ok(given, strlen(given))) {
            say_trouble("--name '%s': give 1 to %d characters of A-Z a-z 0-9 . _ : and -",
                        say_text(given, strlen(given), shown), RECORD_NAME_MAX);
            return false;
        }
        snprintf(out, RECORD_NAME_MAX + 1, "%s", given);
        return true;
    }
    gethostname(host, sizeof host - 1);
    for (char *p = host; *p; p++)
        if (!record_user_name_ok(p, 1))
            *p = '-';
    snprintf(out, RECORD_NAME_MAX + 1, "%s:%d", host[0] ? host : "host", (int)getpid());
    return true;
}
