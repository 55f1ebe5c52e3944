/* Which jobs wait for another try, and when trouble is logged. */
#include "t.h"

#include "coord/retry.h"

T_TEST(retry_waits_until_the_deadline)
{
    struct retry r;
    struct job j = { .what = JOB_TAKE, .deadline_ms = 100 };
    retry_init(&r, 0);
    T_EQ(r.wait_ms, RETRY_WAIT_MS);
    T_OK(retry_waits(&r, &j, FIRN_EIO, 99));
    T_OK(!retry_waits(&r, &j, FIRN_EIO, 100));
    static const int heal[] = { FIRN_EUNKNOWN, FIRN_EIO, FIRN_ECONFLICT, FIRN_EAGAIN, FIRN_ENOMEM };
    static const int never[] = { FIRN_EINVAL,  FIRN_ENOENT, FIRN_EOVERFLOW, FIRN_EFORMAT,
                                 FIRN_EREUSED, FIRN_ESTORE, FIRN_ECLOCK };
    for (size_t i = 0; i < T_LEN(heal); i++)
        T_OK(retry_waits(&r, &j, heal[i], 0), "%s", firn_error_name(heal[i]));
    for (size_t i = 0; i < T_LEN(never); i++)
        T_OK(!retry_waits(&r, &j, never[i], 0), "%s", firn_error_name(never[i]));
    j.what = JOB_FETCH; /* the next request asks again */
    T_OK(!retry_waits(&r, &j, FIRN_EIO, 0));
}

/* A store that costs 2 s each time: the third round would end after the deadline. */
T_TEST(retry_ends_before_a_round_that_would_pass_the_deadline)
{
    struct retry r;
    struct job j = { .what = JOB_TAKE, .deadline_ms = 6000 };
    retry_init(&r, 0);
    retry_round(&r, 1000);
    T_OK(retry_waits(&r, &j, FIRN_EIO, 3000));
    T_OK(retry_waits(&r, &j, FIRN_ECONFLICT, 5500), "others were faster: that is quick");
    retry_round(&r, 3050);
    T_OK(!retry_waits(&r, &j, FIRN_EIO, 5050));
}

/* No client waits for a store that has failed for longer than any client waits. */
T_TEST(retry_new_jobs_do_not_wait_for_a_hopeless_store)
{
    struct retry r;
    struct job take = { .what = JOB_TAKE, .deadline_ms = 10000 },
               keep = { .what = JOB_KEEP, .deadline_ms = 10000 };
    retry_init(&r, 500);
    T_OK(retry_failed(&r, 1000));
    T_OK(retry_waits(&r, &take, FIRN_EIO, 1499));
    T_OK(!retry_waits(&r, &take, FIRN_EIO, 1500));
    T_OK(retry_waits(&r, &take, FIRN_ECONFLICT, 1500)); /* that is no failure of the store */
    T_OK(retry_waits(&r, &keep, FIRN_EIO, 1500));       /* it has its IDs already */
    T_EQ(retry_succeeded(&r), 1);
    T_OK(retry_waits(&r, &take, FIRN_EIO, 1500));
}

T_TEST(retry_logs_the_first_failure_and_then_a_few)
{
    struct retry r;
    retry_init(&r, 0);
    T_OK(retry_failed(&r, 1));
    T_OK(!retry_failed(&r, 2));
    T_OK(retry_failed(&r, 1 + RETRY_LOG_MS));
    T_EQ(r.failing_since_ms, 1);
    T_EQ(retry_succeeded(&r), 3);
    T_EQ(retry_succeeded(&r), 0);
    T_OK(retry_failed(&r, 2 + RETRY_LOG_MS));
    T_OK(retry_starved(&r, RETRY_LOG_MS));
    T_OK(!retry_starved(&r, RETRY_LOG_MS + 1));
    T_OK(retry_starved(&r, 2 * RETRY_LOG_MS));
}
