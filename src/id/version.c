/* The version that the library was built as. */
#include "firn/version.h"

#define TEXT_OF(x)    #x
#define TEXT(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *firn_version(void)
{
    return TEXT(FIRN_VERSION_MAJOR, FIRN_VERSION_MINOR, FIRN_VERSION_PATCH);
}
