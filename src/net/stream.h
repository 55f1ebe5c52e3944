/*
 * stream.h - one TCP connection of a proxy, in either direction, with or without TLS: bytes in and
 * out with backpressure, a deadline, and an end that is told once. The two sides of a proxy are
 * built on it: edge.h accepts, upstream.h connects. A stream belongs to its loop's thread.
 *
 * Memory: what the owner does not take of a read stays in `in`, and the socket is not read while
 * the stream is paused; what the peer does not take stays in the output, and stream_write() says
 * when the owner should stop. So each direction holds at most a window and one read.
 *
 * Callbacks happen in the loop's turn, never inside of a call of this interface, so an owner's
 * state does not change under its hands. After stream_close() there is no callback.
 */
#ifndef FIRN_NET_STREAM_H
#define FIRN_NET_STREAM_H

#include "net/conn.h"

enum {
    STREAM_READ_BYTES = 64 * 1024,   /* most that one read takes */
    STREAM_WINDOW_BYTES = 64 * 1024, /* unsent bytes from which stream_write() asks to stop ... */
    STREAM_LOW_BYTES = 16 * 1024,    /* ... until it is down to this */
};

enum stream_end {
    STREAM_EOF,    /* the peer sends no more; it may still read */
    STREAM_CUT,    /* the same, but without the end that TLS announces: perhaps not all of it */
    STREAM_BROKEN, /* reset, TLS error, no memory: nothing more goes either way */
};

struct stream;

struct stream_calls {
    /* Bytes that came in, those first that it did not use last time. Returns how many it used; the
     * rest comes again with more behind it, or after stream_resume(). */
    size_t (*input)(void *user, const char *p, size_t len);
    /* Optional. It is connected, with TLS where that is on; or stream_nudge() was called. */
    void (*connected)(void *user);
    /* The output is below STREAM_LOW_BYTES again after stream_write() said stop. */
    void (*drained)(void *user);
    /* When all input was used or cannot be; `why` is for people. The owner closes it, or after
     * STREAM_EOF it sends what it has and calls stream_shut(): when that is sent, STREAM_BROKEN
     * follows. */
    void (*ended)(void *user, enum stream_end how, const char *why);
    /* The deadline has passed. */
    void (*expired)(void *user);
    /* With stream_expect_proxy(): the header was read, and stream_address() is what it told. */
    void (*proxied)(void *user);
};

/* Accept: the connection that `from` has (fd < 0), or `fd` (transferred). NULL: no memory, or the
 * client is gone. `tls` is borrowed; when it is on, the client must begin with a handshake. */
struct stream *stream_accept(struct listener *from, int fd, struct tls_context *tls,
                             const struct stream_calls *calls, void *user);

/* The peer begins with a PROXY header, before TLS; without one the stream breaks. Right after
 * stream_accept(). */
void stream_expect_proxy(struct stream *s);

/* Connect, also to a Unix socket. `host` is what a TLS certificate must be valid for. `first` is
 * sent before everything else, TLS too. */
struct stream *stream_connect(struct loop *l, const struct sockaddr *to, struct tls_context *tls,
                              const char *host, struct slice first,
                              const struct stream_calls *calls, void *user);

/* At once; output that is not sent yet is lost. `reset`: the peer shall see that something is
 * missing. NULL is fine. */
void stream_close(struct stream *s);
void stream_reset(struct stream *s);

/* Send the bytes, behind those before. False: the window is full, drained() follows. */
bool stream_write(struct stream *s, const char *p, size_t len);

/* As if the connection broke in this moment: ended() follows. */
void stream_fail(struct stream *s, const char *why);

/* Send what is written, then say that there is no more. Input still comes. */
void stream_shut(struct stream *s);

/* Call connected() in the next turn. */
void stream_nudge(struct stream *s);

/* Take no input; and again. */
void stream_pause(struct stream *s);
void stream_resume(struct stream *s);

/* expired() is called in `ms`, unless it is set anew before; 0: never. */
void stream_deadline(struct stream *s, uint64_t ms);

/* Bytes written that the kernel has not taken. */
size_t stream_unsent(const struct stream *s);

/* All bytes that the kernel has taken so far: whether there was progress. */
uint64_t stream_sent(const struct stream *s);

/* Whether a server takes nothing more of what is written. What it said before is still read, and
 * then its end is told. */
bool stream_deaf(const struct stream *s);

/* Whether stream_connect() failed for want of something of this machine: descriptors, ports,
 * memory. It says nothing about the server. */
bool stream_own_fault(const struct stream *s);

/* For an idle connection, before a request that must not be sent twice is: whether the peer has
 * closed it in this moment. */
bool stream_gone(const struct stream *s);

bool stream_is_tls(const struct stream *s);
/* It is broken because the peer does not speak TLS as it must. */
bool stream_tls_failed(const struct stream *s);
const char *stream_peer_name(const struct stream *s); /* as tls_peer_name() */
/* "127.0.0.1:51234", "unix" or "?"; `sa` may be NULL. */
void stream_address(const struct stream *s, char out[PEER_ADDRESS_BUF],
                    struct sockaddr_storage *sa);
/* The address that the peer connected to. */
void stream_own_address(const struct stream *s, struct sockaddr_storage *sa);

/* By loop.c. */
void streams_free(struct loop *l);

#endif
