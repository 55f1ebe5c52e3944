/* The --store option: find the URL, check it, open the store. */
#include "cli/store_option.h"
#include "cli/say.h"
#include "store/url.h"

#include <stdlib.h>
#include <string.h>

const char *store_option_url(const char *given)
{
    struct firn_diag d = { 0 };
    const char *url = given ? given : getenv("FIRN_STORE");
    if (!url || !*url)
        say_trouble("--store is required: the store to use, such as sqlite:firn.db or "
                    "etcd://127.0.0.1:2379/firn; or set FIRN_STORE");
    else if (firn_store_url_check(url, &d) != 0)
        say_trouble("%s", d.text);
    else if (strcmp(url, "memory:") == 0)
        say_trouble("--store memory: lives in one process: name a store that processes can share");
    else
        return url;
    return NULL;
}

typedef int open_fn(const char *url, uint32_t timeout_ms, struct firn_store **out,
                    struct firn_diag *d);

static int open_with(open_fn *open, const char *url, uint32_t timeout_ms, struct firn_store **out)
{
    struct firn_diag d = { 0 };
    char shown[SAY_TEXT_BUF], redacted[SAY_TEXT_BUF];
    url = store_option_url(url);
    if (!url)
        return STATUS_TROUBLE;
    int error = open(url, timeout_ms, out, &d);
    if (error == 0)
        return -1;
    store_url_redact(url, redacted, sizeof redacted);
    return say_trouble("%s: %s", say_text(redacted, strlen(redacted), shown),
                       d.text[0] ? d.text : firn_error_message(error));
}

int store_option_open(const char *url, uint32_t timeout_ms, struct firn_store **out)
{
    return open_with(firn_store_open, url, timeout_ms, out);
}

int store_option_open_existing(const char *url, uint32_t timeout_ms, struct firn_store **out)
{
    return open_with(firn_store_open_existing, url, timeout_ms, out);
}
