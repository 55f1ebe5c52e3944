/* How connections end when the server does. */
#include "conn_world.h"

T_TEST(conn_drain_finishes_what_is_in_flight)
{
    static struct world w;
    world_start(&w, NULL);
    int idle = dial(&w), busy = dial(&w), half = dial(&w), redis = dial(&w);
    say(idle, GET("/n/1"));
    hear_number(idle, 1);
    say(redis, "PING\r\n");
    hear(redis, "+PONG\r\n");
    say(half, "GET /n/4 HTTP/1.1\r\n");
    say(busy, GET("/d/2"));
    wait_deferred(&w, 1);
    loop_drain(w.loop);
    hear_end(idle);
    hear_end(redis);
    int late = socket(AF_INET, SOCK_STREAM, 0);
    T_OK(connect(late, (struct sockaddr *)&w.address, sizeof w.address) < 0);
    close(late);
    say(half, "Host: a\r\n\r\n");
    hear_number(half, 4);
    hear_end(half);
    T_OK(silent(busy, 20));
    ask(&w, release_all_backwards, NULL);
    hear_number(busy, 2);
    hear_end(busy);
    pthread_join(w.thread, NULL);
    loop_free(w.loop);
    T_EQ(w.places.open, 0);
}

T_TEST(conn_leave_ends_connections_with_an_answer)
{
    static struct world w;
    world_start(&w, NULL);
    int kept = dial(&w), redis = dial(&w);
    say(kept, GET("/n/1"));
    hear_number(kept, 1);
    say(redis, "PING\r\n");
    hear(redis, "+PONG\r\n");
    loop_leave(w.loop);
    ask(&w, nothing, NULL); /* the loop has seen it */
    T_OK(silent(kept, 20), "a connection without a request stays");
    say(kept, GET("/n/2"));
    hear_last_number(kept, 2);
    int late = dial(&w);
    say(late, GET("/n/3"));
    hear_last_number(late, 3);
    say(redis, "PING\r\n");
    hear(redis, "+PONG\r\n");
    loop_drain(w.loop);
    hear_end(redis);
    pthread_join(w.thread, NULL);
    loop_free(w.loop);
    T_EQ(w.places.open, 0);
}

/* All that had arrived is answered, in order; only the last answer says that it is the last. */
T_TEST(conn_leave_answers_what_is_deferred)
{
    for (int again = 0; again < 2; again++) {
        static struct world w;
        world_start(&w, NULL);
        int fd = dial(&w);
        say(fd, again ? GET("/d/1") GET("/s/2") GET("/r/3") : GET("/d/1") GET("/d/2") GET("/d/3"));
        size_t last = again ? 2 : 3;
        wait_deferred(&w, last);
        loop_leave(w.loop);
        ask(&w, nothing, NULL);
        for (size_t i = 0; i < last; i++)
            ask(&w, release_one, &i);
        hear_number(fd, 1);
        hear_number(fd, 2);
        hear_last_number(fd, 3);
        world_stop(&w);
        T_EQ(w.places.open, 0);
        memset(&w, 0, sizeof w);
    }
}

/* What arrives behind an answer that said that it is the last is not handed over. */
T_TEST(conn_leave_looks_at_nothing_behind_the_last)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, GET("/d/1") GET("/d/2"));
    wait_deferred(&w, 2);
    loop_leave(w.loop);
    ask(&w, nothing, NULL);
    size_t second = 1, first = 0;
    ask(&w, release_one, &second);
    say(fd, GET("/d/3"));
    ask(&w, nothing, NULL);
    ask(&w, release_one, &first);
    hear_number(fd, 1);
    hear_last_number(fd, 2);
    T_EQ(w.ctx.deferred_len, 2);
    world_stop(&w);
}

/* A client that asks one request after another has sent the next one when the server ends. */
T_TEST(conn_drain_waits_for_a_request_on_its_way)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w), fresh = dial(&w);
    say(fd, GET("/n/1"));
    hear_number(fd, 1);
    loop_drain(w.loop);
    ask(&w, nothing, NULL);
    say(fd, GET("/n/2"));
    say(fresh, GET("/n/3"));
    hear_last_number(fd, 2);
    hear_last_number(fresh, 3);
    pthread_join(w.thread, NULL);
    loop_free(w.loop);
    T_EQ(w.places.open, 0);
}

struct arrived {
    int kept, late, redis;
};

/* On the loop's thread: it sees nothing of this before it hears that it is to drain. */
static void arrive_and_drain(struct world *w, void *arg)
{
    struct arrived *a = arg;
    say(a->kept, GET("/n/7"));
    say(a->redis, "PING\r\n");
    a->late = dial(w);
    say(a->late, GET("/n/8"));
    loop_drain(w->loop);
}

T_TEST(conn_drain_answers_what_had_arrived)
{
    static struct world w;
    world_start(&w, NULL);
    struct arrived a = { .kept = dial(&w), .redis = dial(&w) };
    say(a.kept, GET("/n/1"));
    hear_number(a.kept, 1);
    say(a.redis, "PING\r\n");
    hear(a.redis, "+PONG\r\n");
    ask(&w, arrive_and_drain, &a);
    hear_last_number(a.kept, 7);
    hear_last_number(a.late, 8);
    hear(a.redis, "+PONG\r\n");
    hear_end(a.redis);
    pthread_join(w.thread, NULL);
    loop_free(w.loop);
    T_EQ(w.places.open, 0);
}

T_TEST(conn_drain_does_not_wait_for_ever)
{
    static struct world w;
    struct loop_opts opts = { .drain_ms = 100 };
    world_start(&w, &opts);
    int fd = dial(&w);
    say(fd, GET("/d/1"));
    wait_deferred(&w, 1);
    loop_drain(w.loop);
    pthread_join(w.thread, NULL);
    release_all_backwards(&w, NULL); /* the loop's thread is gone: this is as good as it */
    loop_free(w.loop);
    hear_end(fd);
}
