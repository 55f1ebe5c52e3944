#include "cli/store_option.h"
#include "cli/say.h"

#include <stdlib.h>

int store_option_open(const char *url, struct firn_store **out)
{
    struct firn_diag d = { 0 };
    if (!url)
        url = getenv("FIRN_STORE");
    if (!url || !*url)
        return say_trouble("which store? Give --store URL, or set FIRN_STORE");
    int r = firn_store_open(url, 0, out, &d);
    return r ? say_trouble("%s", d.text[0] ? d.text : firn_error_message(r)) : -1;
}
