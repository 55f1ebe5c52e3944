/* Files that are read while a server serves: what could hold it is refused. */
#include "daemon/regular_file.h"
#include "t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

T_TEST(kinds)
{
    char dir[] = "/tmp/firn-regular-XXXXXX", path[64], text[8] = "";
    const char *why = NULL;
    T_OK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/x", dir);
    T_OK(!regular_file_open(path, &why) && errno == ENOENT, "%s", why);
    T_OK(!regular_file_open(dir, &why) && errno == EINVAL);
    T_STR(why, "not a regular file");
    T_EQ(mkfifo(path, 0600), 0);
    why = NULL;
    T_OK(!regular_file_open(path, &why) && errno == EINVAL);
    T_STR(why, "not a regular file");
    unlink(path);
    FILE *f = fopen(path, "w");
    T_OK(f && fputs("text", f) >= 0 && fclose(f) == 0);
    f = regular_file_open(path, &why);
    T_OK(f && fgets(text, sizeof text, f) && fclose(f) == 0);
    T_STR(text, "text");
    unlink(path);
    rmdir(dir);
    f = regular_file_open("/dev/null", &why);
    T_OK(f && fgetc(f) == EOF && !ferror(f) && fclose(f) == 0);
}
