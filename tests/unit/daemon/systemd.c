/* Messages to systemd, read at the other end of the socket, and the sockets that it passes. */
#include "t.h"

#include "daemon/systemd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const port_names[] = { "home", "snowflake", "ticket" };

static struct firn_diag diag;

/* A socket as systemd's: abstract if `name` begins with '@'. */
static int manager(const char *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    size_t n = strlen(name);
    memcpy(at.sun_path, name, n);
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    T_OK(fd >= 0);
    T_EQ(bind(fd, (void *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

static const char *heard(int fd)
{
    static char text[1024];
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void say_everything(const char *name)
{
    int fd = manager(name);
    T_EQ(systemd_ready("serving on :9000"), 0);
    T_STR(heard(fd), "READY=1\nSTATUS=serving on :9000");
    T_EQ(systemd_ready(NULL), 0);
    T_STR(heard(fd), "READY=1\n");
    T_EQ(systemd_reloading(), 0);
    T_OK(strncmp(heard(fd), "RELOADING=1\nMONOTONIC_USEC=", 27) == 0);
    T_EQ(systemd_stopping("draining"), 0);
    T_STR(heard(fd), "STOPPING=1\nSTATUS=draining");
    T_EQ(systemd_watchdog(), 0);
    T_STR(heard(fd), "WATCHDOG=1");
    T_EQ(systemd_status("slot %d\nREADY=1", 3), 0); /* a line break cannot smuggle in a field */
    T_STR(heard(fd), "STATUS=slot 3 READY=1");
    close(fd);
    unsetenv("NOTIFY_SOCKET");
}

T_TEST(systemd_notify_path)
{
    char dir[] = "/tmp/firn-systemd-XXXXXX", path[64];
    T_OK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/notify", dir);
    say_everything(path);
    unlink(path);
    rmdir(dir);
}

T_TEST(systemd_watchdog_is_fed_twice_in_its_time)
{
    char pid[32];
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    T_EQ(systemd_watchdog_ms(), 0);
    setenv("WATCHDOG_USEC", "10000000", 1);
    T_EQ(systemd_watchdog_ms(), 5000);
    setenv("WATCHDOG_USEC", "800000", 1);
    T_EQ(systemd_watchdog_ms(), 400);
    setenv("WATCHDOG_USEC", "1", 1);
    T_EQ(systemd_watchdog_ms(), 1);
    setenv("WATCHDOG_PID", "1", 1); /* another process is watched */
    T_EQ(systemd_watchdog_ms(), 0);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    T_EQ(systemd_watchdog_ms(), 1);
    setenv("WATCHDOG_USEC", "x", 1);
    T_EQ(systemd_watchdog_ms(), 0);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

T_TEST(systemd_notify_abstract)
{
    char name[64];
    snprintf(name, sizeof name, "@firn-test-%d", (int)getpid());
    say_everything(name);
}

T_TEST(systemd_notify_without_systemd)
{
    unsetenv("NOTIFY_SOCKET");
    T_EQ(systemd_ready("x"), 0);
    T_EQ(systemd_watchdog(), 0);
    static const char *const bad[] = { "/nonexistent/socket", "relative", "vsock:2:3" };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        setenv("NOTIFY_SOCKET", bad[i], 1);
        T_EQ(systemd_ready("x"), FIRN_EIO, "%s", bad[i]);
    }
    char *longer = malloc(301);
    T_OK(longer);
    memset(longer, '/', 300);
    longer[300] = '\0';
    setenv("NOTIFY_SOCKET", longer, 1);
    T_EQ(systemd_ready("x"), FIRN_EIO);
    free(longer);
    unsetenv("NOTIFY_SOCKET");
}

enum what { TCP_LISTENING, TCP_BOUND, UDP, A_FILE };

static int open_one(enum what what)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    if (what == A_FILE)
        return open("/dev/null", O_RDONLY);
    int fd = socket(AF_INET, what == UDP ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (fd >= 0 &&
        (bind(fd, (void *)&at, sizeof at) != 0 || (what == TCP_LISTENING && listen(fd, 1) != 0)))
        _exit(90);
    return fd;
}

/* Descriptors 3 and up are the harness's in this process, so a child plays the service. Its exit
 * status tells: 100 + the number of sockets, or the negated error. */
static int as_service(size_t n, const enum what *what, const char *names, const char *pid,
                      const int *ports)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (int fd = 3; fd < 40; fd++)
            close(fd);
        for (size_t i = 0; i < n; i++)
            if (open_one(what[i]) != 3 + (int)i)
                _exit(91);
        char self[16], count[24];
        snprintf(self, sizeof self, "%d", (int)getpid());
        snprintf(count, sizeof count, "%zu", n);
        setenv("LISTEN_PID", pid ? pid : self, 1);
        setenv("LISTEN_FDS", count, 1);
        if (names)
            setenv("LISTEN_FDNAMES", names, 1);
        struct systemd_socket out[SYSTEMD_SOCKETS_MAX];
        size_t found = 77;
        int r = systemd_sockets(port_names, T_LEN(port_names), out, &found, &diag);
        if (getenv("LISTEN_PID") || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES"))
            _exit(92);
        if (r)
            _exit(found == 77 ? -r : 93);
        for (size_t i = 0; i < found; i++)
            if (out[i].fd != 3 + (int)i || (int)out[i].port != ports[i] ||
                !(fcntl(out[i].fd, F_GETFD) & FD_CLOEXEC))
                _exit(94);
        _exit(100 + (int)found);
    }
    int status = 0;
    T_EQ(waitpid(child, &status, 0), child);
    T_OK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

T_TEST(systemd_socket_activation)
{
    static const enum what tcp[4] = { TCP_LISTENING, TCP_LISTENING, TCP_LISTENING, TCP_LISTENING };
    static const int in_order[] = { 0, 1, 2 }, mixed[] = { 2, 0, 0, 1 };
    T_EQ(as_service(3, tcp, NULL, NULL, in_order), 103);
    T_EQ(as_service(3, tcp, "firnd.socket:firnd.socket:firnd.socket", NULL, in_order), 103);
    T_EQ(as_service(1, tcp, "", NULL, in_order), 101);
    T_EQ(as_service(4, tcp, "ticket:home:home:snowflake", NULL, mixed), 104);
    T_EQ(as_service(0, tcp, NULL, NULL, in_order), 100);
    T_EQ(as_service(3, tcp, NULL, "1", in_order), 100); /* meant for another process */
    T_EQ(as_service(3, tcp, NULL, "", in_order), 100);
}

T_TEST(systemd_socket_activation_refuses)
{
    static const enum what tcp[4] = { TCP_LISTENING, TCP_LISTENING, TCP_LISTENING, TCP_LISTENING };
    static const enum what bound = TCP_BOUND, udp = UDP, file = A_FILE;
    static const int none[4];
    T_EQ(as_service(4, tcp, NULL, NULL, none), -FIRN_EINVAL); /* a fourth port? */
    T_EQ(as_service(2, tcp, "home:other", NULL, none),
         -FIRN_EINVAL);                                         /* a name of ours, and another */
    T_EQ(as_service(2, tcp, "home", NULL, none), -FIRN_EINVAL); /* a name is missing */
    T_EQ(as_service(1, &bound, NULL, NULL, none), -FIRN_EINVAL);
    T_EQ(as_service(1, &udp, NULL, NULL, none), -FIRN_EINVAL);
    T_EQ(as_service(1, &file, NULL, NULL, none), -FIRN_EINVAL);

    char self[16];
    struct systemd_socket out[SYSTEMD_SOCKETS_MAX];
    size_t n = 5;
    snprintf(self, sizeof self, "%d", (int)getpid());
    setenv("LISTEN_PID", self, 1);
    setenv("LISTEN_FDS", "65", 1);
    T_EQ(systemd_sockets(port_names, T_LEN(port_names), out, &n, &diag), FIRN_EINVAL);
    T_OK(strstr(diag.text, "(65, at most 64)"), "%s", diag.text);
    T_EQ(n, 5);
    setenv("LISTEN_PID", self, 1);
    setenv("LISTEN_FDS", "x", 1);
    T_EQ(systemd_sockets(port_names, T_LEN(port_names), out, &n, &diag), 0);
    T_EQ(n, 0);
}
