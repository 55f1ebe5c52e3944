/* No byte that comes from a server or a file reaches the terminal as a command to it. */
#include "cli/escape.h"
#include "t.h"

#include <stdlib.h>

static char *shown(const char *p, size_t len)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    T_OK(f != NULL);
    escape_put(f, p, len);
    fclose(f);
    return text;
}

static void shows(const char *in, const char *want)
{
    char *text = shown(in, strlen(in));
    T_STR(text, want);
    free(text);
}

T_TEST(known)
{
    shows("", "");
    shows("plain text 0-9 ~", "plain text 0-9 ~");
    shows("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
    shows("\x1b[31m", "\\x1b[31m");
    shows("a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f");
    shows("\xc3(", "\\xc3(");
    shows("\xc2\x9b"
          "31m",
          "\\xc2\\x9b"
          "31m"); /* a control character of Latin-1 */
}

T_TEST(any_bytes)
{
    for (uint64_t round = 0; round < t_scale(20000); round++) {
        char in[24];
        size_t len = t_random_below(sizeof in + 1);
        t_random_bytes(in, len);
        char *text = shown(in, len);
        for (const char *p = text; *p; p++)
            T_OK((unsigned char)*p >= ' ' && *p != '\x7f', "a control character is shown");
        free(text);
    }
}
