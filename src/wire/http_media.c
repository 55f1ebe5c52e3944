/* Media types: the lists in Accept, the one in Content-Type. */
#include "wire/http.h"

#include <strings.h>

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
    while (http_part(&value, ',', &range)) {
        bool wanted = http_part(&range, ';', &part) && part.len == len &&
                      strncasecmp(part.p, type, len) == 0;
        while (http_part(&range, ';', &part))
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
    return http_part(&value, ';', &first) && first.len == len &&
           strncasecmp(first.p, type, len) == 0;
}
