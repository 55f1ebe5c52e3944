/* A log that was being cut off when the process ended. */
#include "t.h"

#include "raft/shield/truncation.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[64], note[80];

static void begin(void)
{
    strcpy(dir, "/tmp/firn-cut-XXXXXX");
    T_OK(mkdtemp(dir));
    snprintf(note, sizeof note, "%s/cut", dir);
}

static void end(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", dir);
    T_EQ(system(command), 0);
}

static const char *segment(uint64_t first, uint64_t last)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%016" PRIu64 "-%016" PRIu64, dir, first, last);
    return path;
}

static void make(uint64_t first, uint64_t last)
{
    FILE *f = fopen(segment(first, last), "w");
    T_OK(f && fclose(f) == 0);
}

static bool there(uint64_t first, uint64_t last)
{
    return access(segment(first, last), F_OK) == 0;
}

T_TEST(what_was_to_go_goes)
{
    begin();
    make(1, 90);
    make(91, 100); /* of 91 to 104, before the cut at 101 */
    make(105, 106);
    make(107, 130);
    truncation_note(note, 101, 130);
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(there(1, 90) && there(91, 100) && !there(105, 106) && !there(107, 130));
    make(105, 106); /* and that was all */
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(there(105, 106));
    end();
}

T_TEST(so_does_the_whole_log_behind_a_snapshot)
{
    begin();
    make(105, 106);
    make(107, 130);
    truncation_note(note, 101, 130); /* there was one from 101 to 104 */
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(!there(105, 106) && !there(107, 130));
    end();
}

T_TEST(a_hole_that_nobody_cut_stays)
{
    begin();
    make(91, 100);
    make(105, 106);
    T_EQ(truncation_finish(note, dir, NULL), 0); /* libraft will refuse it */
    truncation_note(note, 101, 130);
    truncation_done(note);
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(there(91, 100) && there(105, 106));
    truncation_note(note, 96, 130); /* another one, that had not begun */
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(there(91, 100) && there(105, 106));
    truncation_note(note, 103, 130); /* what is before that is not there either */
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(there(91, 100) && there(105, 106));
    end();
}

T_TEST(a_note_of_what_is_over_does_no_harm)
{
    begin();
    make(101, 120); /* written since */
    make(121, 130);
    truncation_note(note, 101, 130);
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(there(101, 120) && there(121, 130));
    make(91, 100);
    truncation_note(note, 101, 130);
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(there(101, 120) && there(121, 130));
    end();
}

T_TEST(what_was_written_long_after_it_stays)
{
    begin();
    make(140, 160); /* what was before is in a snapshot by now */
    truncation_note(note, 101, 130);
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(there(140, 160));
    end();
}

T_TEST(a_damaged_note_is_none)
{
    begin();
    make(91, 100);
    make(105, 106);
    FILE *f = fopen(note, "w");
    T_OK(f && fputs("firnvote0000000000000000000000", f) >= 0 && fclose(f) == 0);
    T_EQ(truncation_finish(note, dir, NULL), 0);
    T_OK(there(91, 100) && there(105, 106));
    end();
}
