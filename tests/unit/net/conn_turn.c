/* What one turn of the loop finds: the answers of many connections are gathered and sent together,
 * and a request that came before is not parsed again. */
#include "conn_world.h"

static void hold(struct world *w, void *arg)
{
    (void)w;
    while (sem_wait(arg) < 0)
        continue;
}

struct held_loop {
    struct world *w;
    sem_t go;
};

static void *hold_loop(void *arg)
{
    struct held_loop *h = arg;
    ask(h->w, hold, &h->go);
    return NULL;
}

enum { TURN_CONNS = 96 }; /* more than are gathered at once */

static const char *turn_text(unsigned i, char out[512])
{
    unsigned n = 1000 + i;
    switch (i % 8) {
    case 0: /* several answers */
        snprintf(out, 512, GET("/n/%u") GET("/n/%u") GET("/n/%u"), n, n + 1, n + 2);
        break;
    case 1: /* an answer that is longer than what is gathered, and than what the socket takes */
        snprintf(out, 512, GET("/n/%u") GET("/big") GET("/n/%u"), n, n + 1);
        break;
    case 2:
        snprintf(out, 512, GET_LAST("/n/%u"), n);
        break;
    case 3:
        snprintf(out, 512, "*2\r\n$1\r\nN\r\n$4\r\n%u\r\n", n);
        break;
    case 4: /* refused, behind an answer */
        snprintf(out, 512, GET("/n/%u") "GET / HTTP/9.9\r\nHost: a\r\n\r\n", n);
        break;
    case 5: /* half of a request behind it */
        snprintf(out, 512, GET("/n/%u") "GET /n/7 HT", n);
        break;
    default: /* 6: the peer ends its side; 7: it is gone before the answer */
        snprintf(out, 512, GET("/n/%u"), n);
    }
    return out;
}

static void turn_hear(int fd, unsigned i)
{
    static char body[BIG_BYTES + 100];
    unsigned n = 1000 + i;
    char line[32];
    switch (i % 8) {
    case 0:
        for (unsigned k = 0; k < 3; k++)
            hear_number(fd, n + k);
        break;
    case 1:
        hear_number(fd, n);
        T_EQ(hear_http(fd, body, sizeof body), 200);
        T_EQ(strlen(body), BIG_BYTES);
        hear_number(fd, n + 1);
        break;
    case 2:
        hear_last_number(fd, n);
        return;
    case 3:
        snprintf(line, sizeof line, ":%u\r\n", n);
        hear(fd, line);
        break;
    case 4:
        hear_number(fd, n);
        T_EQ(hear_http(fd, body, sizeof body), 505);
        hear_end(fd);
        return;
    case 5:
        hear_number(fd, n);
        say(fd, "TP/1.1\r\nHost: a\r\n\r\n");
        hear_number(fd, 7);
        break;
    default:
        hear_number(fd, n);
        hear_end(fd);
        return;
    }
    close(fd);
}

T_TEST(conn_many_in_one_turn)
{
    static struct world w;
    int fds[TURN_CONNS];
    char text[512];
    struct linger reset = { 1, 0 };
    world_start(&w, NULL);
    for (int round = 0; round < 4; round++) {
        for (unsigned i = 0; i < TURN_CONNS; i++) { /* an answer each: all are accepted */
            fds[i] = dial(&w);
            if (i % 8 != 3) {
                say(fds[i], GET("/n/1"));
                hear_number(fds[i], 1);
            }
        }
        struct held_loop h = { .w = &w };
        pthread_t holder;
        sem_init(&h.go, 0, 0);
        T_EQ(pthread_create(&holder, NULL, hold_loop, &h), 0);
        for (unsigned i = 0; i < TURN_CONNS; i++) {
            say(fds[i], turn_text(i, text));
            if (i % 8 == 6)
                shutdown(fds[i], SHUT_WR);
            if (i % 8 == 7) {
                setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
                close(fds[i]);
            }
        }
        sem_post(&h.go);
        pthread_join(holder, NULL);
        sem_destroy(&h.go);
        for (unsigned i = TURN_CONNS; i-- > 0;)
            if (i % 8 != 7)
                turn_hear(fds[i], i);
    }
    world_stop(&w);
    T_EQ(w.ctx.closed, 4 * TURN_CONNS);
}

/* More than one read takes, in one turn, and answers that are gathered in between. */
T_TEST(conn_long_input_in_one_turn)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    struct buf text;
    buf_init(&text, 1 << 20);
    for (unsigned i = 0; i < 20; i++)
        buf_addf(&text, "GET /n/%u HTTP/1.1\r\nHost: a\r\nX-Long: %08000d\r\n\r\n", 1000 + i, 1);
    say_n(fd, text.p, text.len);
    for (unsigned i = 0; i < 20; i++)
        hear_number(fd, 1000 + i);
    buf_done(&text);
    close(fd);
    world_stop(&w);
}

/* Equal bytes mean the same, and a byte that differs does not, wherever it stands. */
T_TEST(conn_same_request_again)
{
    static struct world w;
    world_start(&w, NULL);
    int a = dial(&w), b = dial(&w);
    char body[4096];
    for (unsigned i = 0; i < 100; i++) { /* so often that the first is known */
        say(a, GET("/n/11"));
        hear_number(a, 11);
    }
    for (unsigned i = 0; i < 100; i++) {
        say(a, GET("/n/11") GET("/n/12") GET("/n/11") "GET /n/11 HTTP/1.1\r\nHos");
        hear_number(a, 11);
        hear_number(a, 12);
        hear_number(a, 11);
        say(b, "GET /n/11 HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n" GET("/n/11"));
        hear_number(b, 11);
        hear_number(b, 11);
        say(a, "t: a\r\n\r\n");
        hear_number(a, 11);
    }
    close(a);
    say(b, "GET /n/11 HTTP/1.1\r\nHost: a\r\n \r\n");
    T_EQ(hear_http(b, body, sizeof body), 400);
    hear_end(b);
    world_stop(&w);
}
