/*
 * Lanes: one slot, several loops, each with its own generator and its own share of the sequence
 * range. A loop closes its generator itself, between two IDs, and then tells its exact last tick;
 * the coordinator frees the slot with the highest of them. While they run, loops publish their last
 * tick once per turn only.
 *
 * Claims: no (tick, seq) is stamped twice; none beyond the window; nothing is stamped above the
 * mark that was given back.
 *
 * Each switch removes one rule, and spin must then find a violation:
 *   BUG_ONE_LANE    the coordinator does not wait for every lane
 *   BUG_FIRST_LAST  it takes the last tick of one lane, not the highest
 *   BUG_PUBLISHED   it takes what was published instead of closing the lanes
 *   BUG_SAME_PART   two lanes use the same share of the sequence range
 */
#ifndef NT
#define NT 4
#endif
#ifndef LANES
#define LANES 2
#endif

byte until = 2, mark, published[LANES], final[LANES];
bool closing, freed, is_closed[LANES];
short stamped; /* bit 2 * tick + part */

#ifdef BUG_SAME_PART
#define PART 0
#else
#define PART lane
#endif

proctype Lane(byte lane) {
    byte t, next = 1;
    do
    :: next < until ->
        t = next; /* from here on the tick is this lane's */
        atomic {
            assert(!(stamped & (1 << (LANES * t + PART))));
            assert(!freed || t <= mark);
            stamped = stamped | (1 << (LANES * t + PART));
            next = t + 1
        }
    :: next < until -> next++ /* the clock went on */
    :: published[lane] < next - 1 -> published[lane] = next - 1 /* the end of a turn */
    :: closing -> break
    od;
    final[lane] = next - 1;
    is_closed[lane] = true
}

active proctype Coordinator() {
    byte i;
    if :: until = NT :: true fi;
    closing = true;
#ifdef BUG_PUBLISHED
    do :: i < LANES -> if :: published[i] > mark -> mark = published[i] :: else fi; i++ :: else -> break od;
#else
#ifdef BUG_ONE_LANE
    is_closed[0] -> skip;
#else
    do :: i < LANES -> is_closed[i]; i++ :: else -> break od;
#endif
    i = 0;
    do
    :: i < LANES ->
        if :: final[i] > mark -> mark = final[i] :: else fi;
        i++;
#ifdef BUG_FIRST_LAST
        break
#endif
    :: else -> break
    od;
#endif
    atomic {
        freed = true; /* what was stamped before is covered too */
        i = mark + 1;
        do
        :: i < NT ->
            assert(!(stamped & (1 << (LANES * i))) && !(stamped & (1 << (LANES * i + 1))));
            i++
        :: else -> break
        od
    }
}

init {
    byte i;
    atomic {
        do :: i < LANES -> run Lane(i); i++ :: else -> break od
    }
}
