/* Reads Accept-Encoding. */
#include "proxy/gzip.h"
#include "wire/http_line.h"

#include <strings.h>

/* A weight in thousandths: "0", "1", "0.5", "1.000". -1: none of these. */
static int weight(struct slice v)
{
    int q = 0, place = 100;
    if (v.len < 1 || v.len > 5 || (v.p[0] != '0' && v.p[0] != '1') || (v.len > 1 && v.p[1] != '.'))
        return -1;
    q = (v.p[0] - '0') * 1000;
    for (size_t i = 2; i < v.len; i++, place /= 10) {
        if (v.p[i] < '0' || v.p[i] > '9')
            return -1;
        q += (v.p[i] - '0') * place;
    }
    return q <= 1000 ? q : -1;
}

bool gzip_accepted(struct slice list)
{
    struct slice item, name, param;
    int gzip = -1, identity = -1, any = -1;
    while (http_part(&list, ',', &item)) {
        int q = 1000;
        http_part(&item, ';', &name);
        while (http_part(&item, ';', &param)) {
            if (param.len < 2 || (param.p[0] | 0x20) != 'q' || param.p[1] != '=')
                continue;
            q = weight((struct slice){ param.p + 2, param.len - 2 });
            if (q < 0)
                return false;
        }
        if (http_word_is(name, "gzip") || http_word_is(name, "x-gzip"))
            gzip = q > gzip ? q : gzip;
        else if (http_word_is(name, "identity"))
            identity = q;
        else if (slice_is(name, "*"))
            any = q;
    }
    gzip = gzip < 0 ? any : gzip;
    return gzip > 0 && gzip >= identity;
}

bool gzip_type_in(struct slice type, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(list[i]);
        if (type.len >= len && strncasecmp(type.p, list[i], len) == 0)
            return true;
    }
    return false;
}
