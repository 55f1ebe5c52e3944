/* Names of servers: what is an address, and what the resolver makes of it. */
#include "t.h"

#include "proxy/names.h"

#include <string.h>

T_TEST(names_that_are_addresses)
{
    T_OK(name_is_address("10.0.0.1:80"));
    T_OK(name_is_address("[::1]:80"));
    T_OK(name_is_address("unix:/run/a"));
    T_OK(!name_is_address("localhost:80"));
    T_OK(!name_is_address("a.example:80"));
}

T_TEST(names_looked_up)
{
    static const char *const fixed[] = { "10.0.0.1:80", "[2001:db8::1]:443", "unix:/run/a" };
    struct name_found f;
    struct firn_diag d = { 0, "" };
    for (size_t i = 0; i < T_LEN(fixed); i++) {
        T_EQ(name_look_up(fixed[i], &f, &d), 0);
        T_EQ(f.n, 1);
        T_STR(f.address[0], fixed[i]);
    }
    T_EQ(name_look_up("localhost:81", &f, &d), 0, "%s", d.text);
    T_OK(f.n > 0);
    for (size_t i = 0; i < f.n; i++)
        T_OK(strcmp(f.address[i], "127.0.0.1:81") == 0 || strcmp(f.address[i], "[::1]:81") == 0,
             "%s", f.address[i]);
    T_EQ(name_look_up("no.such.name.invalid:80", &f, &d), FIRN_EINVAL);
    T_OK(strstr(d.text, "'no.such.name.invalid:80' cannot be looked up"), "%s", d.text);
}
