#include "t.h"

#include "store/machine.h"
#include "store/store.h"

#include <string.h>

static const char one[] = "0123456789abcdef0123456789abcdef",
                  two[] = "fedcba9876543210fedcba9876543210";

static const char *text(struct file_identity f)
{
    static char out[4][STORE_ID_TEXT_BUF];
    static int i;
    file_identity_text(&f, out[i = (i + 1) % 4], STORE_ID_TEXT_BUF);
    return out[i];
}

static bool same(struct file_identity kept, struct file_identity now)
{
    return file_identity_same(text(kept), text(now));
}

/* A clone of the whole disk has the inode and the time of birth; the machine tells it. */
T_TEST(machine_tells_a_clone)
{
    struct file_identity f = { 17, 1700000000, 123, one }, clone = f, copy = f, unknown = f;
    clone.machine = two;
    copy.inode++;
    unknown.machine = "";
    T_OK(same(f, f));
    T_OK(!same(f, clone));
    T_OK(!same(f, copy));
    T_OK(!same(f, unknown)); /* moved into a container: fenced, which does no harm */
    T_OK(same(unknown, unknown));
    T_OK(!strstr(text(f), one)); /* the id itself is not published */
    struct file_identity longest = { UINT64_MAX, 99999999999, 999999999, one };
    T_OK(strlen(text(longest)) < STORE_ID_TEXT_BUF - 1);
}

/* Stores of earlier versions have no machine in their identity: they are not taken for copies. */
T_TEST(machine_of_earlier_stores)
{
    struct file_identity f = { 17, 1700000000, 123, one }, before = f;
    before.machine = "";
    T_OK(same(before, f));
    before.inode = 1;
    T_OK(!same(before, f));
    T_OK(!file_identity_same("sqlite:17", "sqlite:17:1.000000000:00000000"));
    T_OK(!file_identity_same("etcd:cdf8", "etcd:cdf8:1"));
    T_OK(!file_identity_same("", "sqlite:1:2"));
    T_OK(file_identity_same("memory", "memory"));
}

T_TEST(machine_of_this_test)
{
    char id[2][MACHINE_ID_BUF], boot[2][BOOT_ID_BUF];
    for (int i = 0; i < 2; i++) {
        machine_id(id[i]);
        machine_boot(boot[i]);
    }
    T_STR(id[0], id[1]);
    T_STR(boot[0], boot[1]);
    T_OK(strlen(id[0]) == 0 || strlen(id[0]) == 32);
}
