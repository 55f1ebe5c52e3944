/* Who takes gzip, and which types are compressed. */
#include "proxy/gzip.h"
#include "t.h"

static struct slice of(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

T_TEST(accept_encoding)
{
    static const struct {
        const char *list;
        bool ok;
    } row[] = {
        { "gzip", true },
        { "GZip", true },
        { "x-gzip", true },
        { "deflate, gzip;q=1.0, *;q=0.5", true },
        { "*", true },
        { "br;q=1, *;q=0.001", true },
        { " , gzip ; q=0.5 ,", true },
        { "gzip;q=0.5, identity;q=0.5", true },
        { "gzip;x=y;q=0.5", true },
        { "gzip;q=0, gzip;q=1", true },
        { "", false },
        { "br", false },
        { "gzipped", false },
        { "gzip;q=0", false },
        { "gzip;q=0.000", false },
        { "*;q=0", false },
        { "gzip;q=0, *", false },
        { "gzip;q=0.5, identity", false },
        { "gzip;q=", false },
        { "gzip;q=1.1", false },
        { "gzip;q=2", false },
        { "gzip;q=0.1234", false },
        { "gzip;q=-1", false },
        { "identity", false },
    };
    for (size_t i = 0; i < T_LEN(row); i++)
        T_EQ(gzip_accepted(of(row[i].list)), row[i].ok, "'%s'", row[i].list);
    T_OK(!gzip_accepted((struct slice){ NULL, 0 }));
}

T_TEST(types)
{
    static const char *const list[] = { "application/json", "text/" };
    T_OK(gzip_type_in(of("Application/JSON; charset=x"), list, 2));
    T_OK(gzip_type_in(of("text/html"), list, 2));
    T_OK(!gzip_type_in(of("text"), list, 2) && !gzip_type_in(of("image/png"), list, 2));
    T_OK(!gzip_type_in((struct slice){ NULL, 0 }, list, 2));
}
