#include "cli/lab/trace.h"
#include "t.h"

T_TEST(a_step_starts_from_the_state_before)
{
    struct lab_trace t;
    lab_trace_init(&t, "test", 1);
    int a = lab_trace_party(&t, "A");
    lab_trace_field(&t, "x");
    struct lab_step *s = lab_trace_add(&t, LAB_NOTE, "one", a, a, 1);
    lab_cell(s, a, 0, "%d", 5);
    lab_label(s, "l");
    s->term = 3;
    s = lab_trace_add(&t, LAB_NOTE, "two", a, a, 2);
    T_STR(s->cell[a][0], "5");
    T_STR(s->label, "");
    T_EQ(s->term, 0);
    T_EQ(lab_trace_find(&t, 0, "two"), 1);
    T_EQ(lab_trace_find(&t, 0, "three"), t.steps);
    lab_trace_done(&t);
}

T_TEST(a_run_without_end_is_cut_off)
{
    struct lab_trace t;
    lab_trace_init(&t, "test", 1);
    for (int i = 0; i < 2 * LAB_STEPS_MAX; i++)
        lab_label(lab_trace_add(&t, LAB_NOTE, "n", 0, 0, 0), "%d", i);
    T_OK(t.full);
    T_OK(t.steps <= LAB_STEPS_MAX);
    lab_trace_done(&t);
}

T_TEST(long_texts_are_cut)
{
    struct lab_trace t;
    lab_trace_init(&t, "test", 1);
    struct lab_step *s = lab_trace_add(&t, LAB_NOTE, "n", 0, 0, 0);
    lab_label(s, "%0*d", 2 * LAB_LABEL_BUF, 1);
    T_EQ(strlen(s->label), LAB_LABEL_BUF - 1);
    lab_trace_done(&t);
}
