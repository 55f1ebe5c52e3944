/* Media types: the lists in Accept, the one in Content-Type. */
#include "wire/http.h"

#include <strings.h>

static struct slice trim(struct slice s)
{
    while (s.len > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (struct slice){ s.p + 1, s.len - 1 };
    while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Takes what stands before the next `mark` off *rest, without the space around it. */
static bool next_part(struct slice *rest, char mark, struct slice *part)
{
    if (!rest->p)
        return false;
    const char *end = rest->p + rest->len, *q = memchr(rest->p, mark, rest->len);
    *part = trim((struct slice){ rest->p, (size_t)((q ? q : end) - rest->p) });
    *rest = q ? (struct slice){ q + 1, (size_t)(end - q - 1) } : (struct slice){ NULL, 0 };
    return true;
}

/* "q=0", "q=0.000": not wanted. */
static bool weight_is_zero(struct slice s)
{
    if (s.len < 3 || (s.p[0] | 0x20) != 'q' || s.p[1] != '=')
        return false;
    for (size_t i = 2; i < s.len; i++)
        if (s.p[i] != '0' && s.p[i] != '.')
            return false;
    return true;
}

bool http_names_type(struct slice value, const char *type)
{
    struct slice range, part;
    size_t len = strlen(type);
    while (next_part(&value, ',', &range)) {
        bool wanted = next_part(&range, ';', &part) && part.len == len &&
                      strncasecmp(part.p, type, len) == 0;
        while (next_part(&range, ';', &part))
            wanted = wanted && !weight_is_zero(part);
        if (wanted)
            return true;
    }
    return false;
}

bool http_type_is(struct slice value, const char *type)
{
    struct slice first;
    size_t len = strlen(type);
    return next_part(&value, ';', &first) && first.len == len &&
           strncasecmp(first.p, type, len) == 0;
}
