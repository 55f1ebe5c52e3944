/* A trace as JSON. */
#include "cli/lab/lab_json.h"

#include <string.h>

const char *lab_fault_name(enum lab_fault fault)
{
    switch (fault) {
    case LAB_KILL_LEADER:
        return "kill-leader";
    case LAB_NO_PRE_VOTE:
        return "no-pre-vote";
    case LAB_DUEL:
        return "duel";
    case LAB_KILL_PROPOSER:
        return "kill-proposer";
    case LAB_LOSE:
        return "lose";
    case LAB_PLAIN:
        return "plain";
    case LAB_HERD:
        return "herd";
    }
    return "?";
}

static void put_state(struct buf *j, const struct lab_trace *t, size_t i)
{
    bool begun = false;
    for (unsigned k = 0; k < t->parties; k++) {
        const struct lab_step *s = &t->step[i];
        if (i > 0 && memcmp(s->cell[k], t->step[i - 1].cell[k], sizeof s->cell[k]) == 0)
            continue;
        if (!begun)
            json_begin(j, "state", '{');
        begun = true;
        json_begin(j, t->party[k], '{');
        for (unsigned f = 0; f < t->fields; f++)
            if (s->cell[k][f][0])
                json_text(j, t->field[f], s->cell[k][f]);
        json_end(j, '}');
    }
    if (begun)
        json_end(j, '}');
}

static void put_step(struct buf *j, const struct lab_trace *t, size_t i)
{
    static const char *const kind[] = {
        [LAB_CHAPTER] = "chapter", [LAB_MESSAGE] = "message", [LAB_LOST] = "lost",
        [LAB_NOTE] = "note",       [LAB_FAULT] = "fault",     [LAB_QUIET] = "quiet",
    };
    const struct lab_step *s = &t->step[i];
    json_begin(j, NULL, '{');
    json_text(j, "kind", kind[s->kind]);
    json_text(j, "event", s->event);
    json_count(j, "ms", s->at_ms);
    if (s->from != LAB_NOBODY)
        json_text(j, "from", t->party[s->from]);
    if (s->to != LAB_NOBODY)
        json_text(j, "to", t->party[s->to]);
    if (s->term)
        json_count(j, "term", s->term);
    if (s->index)
        json_count(j, "index", s->index);
    json_text(j, "label", s->label);
    json_text(j, "why", s->why);
    put_state(j, t, i);
    json_end(j, '}');
}

void lab_json(struct buf *j, const struct lab_opts *o, const struct lab_trace *t)
{
    const char *const *links = lab_find(t->lab)->links;
    json_begin(j, NULL, '{');
    json_text(j, "lab", t->lab);
    json_text(j, "title", t->title);
    json_id(j, "seed", t->seed);
    json_begin(j, "faults", '[');
    for (unsigned f = 1; f <= LAB_FAULT_LAST; f <<= 1)
        if (o->faults & f)
            json_text(j, NULL, lab_fault_name((enum lab_fault)f));
    json_end(j, ']');
    json_text(j, "cut", o->cut < 0 ? NULL : links[o->cut]);
    json_begin(j, "parties", '[');
    for (unsigned i = 0; i < t->parties; i++)
        json_text(j, NULL, t->party[i]);
    json_end(j, ']');
    json_begin(j, "fields", '[');
    for (unsigned i = 0; i < t->fields; i++)
        json_text(j, NULL, t->field[i]);
    json_end(j, ']');
    json_begin(j, "steps", '[');
    for (size_t i = 0; i < t->steps; i++)
        put_step(j, t, i);
    json_end(j, ']');
    json_end(j, '}');
}
