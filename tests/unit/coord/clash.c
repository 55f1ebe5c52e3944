#include "t.h"

#include "coord/clash.h"

static const struct node_face a = { "aa", "01", "x", 7, true };

T_TEST(clash_of_two_nodes)
{
    struct node_face b = { "bb", "02", "x", 7, true };
    T_OK(faces_clash(&a, &b));
    T_OK(faces_clash(&b, &a));
    memcpy(b.store, "aa", 3); /* a copy that runs beside the original */
    T_OK(faces_clash(&a, &b));
    T_OK(!faces_clash(&a, &a)); /* one process under two addresses */
    struct node_face other = b;
    other.slot = 8;
    T_OK(!faces_clash(&a, &other));
    other = b;
    other.layout[0] = 'y';
    T_OK(!faces_clash(&a, &other));
    other = b;
    other.ready = false;
    T_OK(!faces_clash(&a, &other) && !faces_clash(&other, &a));
    other = b;
    other.start[0] = '\0'; /* an earlier version */
    T_OK(!faces_clash(&a, &other));
    struct node_face none = b, nobody = a;
    none.slot = nobody.slot = -1;
    T_OK(!faces_clash(&nobody, &none));
}

/* Exactly one of two moves at first, whoever looks first; the other one if it must. */
T_TEST(clash_one_yields)
{
    struct node_face b = { "bb", "02", "x", 7, true };
    for (unsigned looks = 0; looks < 9; looks++) {
        T_EQ(face_yields(&b, &a, looks), looks >= 2);
        T_EQ(face_yields(&a, &b, looks), looks >= 5);
    }
    b.slot = 8;
    T_OK(!face_yields(&b, &a, 9));
}
