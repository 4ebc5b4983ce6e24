/* The connection to the emulator: one socket per process, one heap at the same address in both. */
#include "standin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { EXIT_WITHOUT_EMULATOR = 97 };

struct Machine machine;
Result sticky;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int emulator = -1;
static pid_t owner;
static bool mapped;
static char *alias;

bool served(void) {
    return getenv("PTXGEN_EXEC_SOCKET") != NULL;
}

bool in_heap(const void *address) {
    return mapped && (u64)address >= machine.base && (u64)address < machine.base + machine.limit;
}

void *unguarded(const void *address) {
    return in_heap(address) && alias ? alias + ((u64)address - machine.base) : (void *)address;
}

static void lost(void) {
    static const char text[] = "ptxgen exec: the emulator has ended, and so does this process\n";
    if (write(2, text, sizeof text - 1) < 0) {
    }
    _exit(EXIT_WITHOUT_EMULATOR);
}

static void send_all(const void *data, size_t bytes) {
    const char *at = data;
    while (bytes) {
        ssize_t count = send(emulator, at, bytes, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            lost();
        at += count;
        bytes -= (size_t)count;
    }
}

static void receive_from(int socket, void *data, size_t bytes) {
    char *at = data;
    while (bytes) {
        ssize_t count = recv(socket, at, bytes, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            lost();
        at += count;
        bytes -= (size_t)count;
    }
}

static void receive_all(void *data, size_t bytes) {
    receive_from(emulator, data, bytes);
}

/* Takes the descriptor of the heap, which comes with one byte of its own. */
static int receive_descriptor(void) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t count;
    do
        count = recvmsg(emulator, &header, MSG_CMSG_CLOEXEC);
    while (count < 0 && errno == EINTR);
    struct cmsghdr *found = count == 1 ? CMSG_FIRSTHDR(&header) : NULL;
    if (!found || found->cmsg_type != SCM_RIGHTS)
        lost();
    int descriptor;
    memcpy(&descriptor, CMSG_DATA(found), sizeof descriptor);
    return descriptor;
}

static Result connect_locked(void) {
    if (emulator >= 0 && owner == getpid())
        return SUCCESS;
    const char *path = getenv("PTXGEN_EXEC_SOCKET");
    if (!path)
        return NO_DEVICE;
    if (emulator >= 0)
        close(emulator); /* that of the process before fork */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    emulator = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (emulator < 0 || connect(emulator, (struct sockaddr *)&address, sizeof address)) {
        if (emulator >= 0)
            close(emulator);
        emulator = -1;
        return NO_DEVICE;
    }
    owner = getpid();
    u32 hello[3] = {HELLO, 4, (u32)owner};
    send_all(hello, sizeof hello);
    u32 reply[2];
    receive_all(reply, sizeof reply);
    if (reply[0] || reply[1] != sizeof machine)
        lost();
    receive_all(&machine, sizeof machine);
    int heap = receive_descriptor();
    if (!mapped) { /* after fork the child has the same mapping */
        void *at = mmap((void *)machine.base, machine.limit, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, heap, 0);
        if (at != (void *)machine.base) {
            fprintf(stderr, "ptxgen exec: this process already uses the addresses of device memory, from %#llx on\n",
                    (unsigned long long)machine.base);
            close(heap);
            return NO_DEVICE;
        }
        mapped = true;
        void *twin = mmap(NULL, machine.limit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, heap, 0);
        alias = twin == MAP_FAILED ? NULL : twin;
    }
    close(heap);
    return SUCCESS;
}

Result connect_emulator(void) {
    pthread_mutex_lock(&lock);
    Result result = connect_locked();
    pthread_mutex_unlock(&lock);
    return result;
}

/* The answer at a socket; `data` must be freed. */
static Result take_answer(int socket, char **data, size_t *bytes) {
    u32 answer[2];
    receive_from(socket, answer, sizeof answer);
    *data = malloc((size_t)answer[1] + 1);
    if (!*data)
        lost();
    receive_from(socket, *data, answer[1]);
    (*data)[answer[1]] = 0;
    *bytes = answer[1];
    return (Result)answer[0];
}

static Result send_request(enum Message message, const void *first, size_t first_bytes, const void *second,
                           size_t second_bytes, void **reply, size_t *reply_bytes, int *waiting) {
    pthread_mutex_lock(&lock);
    Result result = connect_locked();
    if (result) {
        pthread_mutex_unlock(&lock);
        if (reply)
            *reply = NULL;
        return result;
    }
    u32 head[2] = {message, (u32)(first_bytes + second_bytes)};
    send_all(head, sizeof head);
    send_all(first, first_bytes);
    send_all(second, second_bytes);
    char *data;
    size_t bytes;
    result = take_answer(emulator, &data, &bytes);
    if (waiting && result == NOT_READY) {
        *waiting = emulator; /* what comes next has a socket of its own */
        emulator = -1;
    }
    pthread_mutex_unlock(&lock);
    if (reply)
        *reply = data;
    else
        free(data);
    if (reply_bytes)
        *reply_bytes = bytes;
    return result;
}

Result request(enum Message message, const void *first, size_t first_bytes, const void *second, size_t second_bytes,
               void **reply, size_t *reply_bytes) {
    return send_request(message, first, first_bytes, second, second_bytes, reply, reply_bytes, NULL);
}

Result request_launch(const void *first, size_t first_bytes, const void *second, size_t second_bytes, void **reply,
                      size_t *reply_bytes, int *waiting) {
    return send_request(LAUNCH, first, first_bytes, second, second_bytes, reply, reply_bytes, waiting);
}

Result receive_answer(int waiting, void **reply, size_t *reply_bytes) {
    char *data;
    Result result = take_answer(waiting, &data, reply_bytes);
    *reply = data;
    close(waiting);
    return result;
}

/* A child of fork must not find the lock held by a thread that it does not have. */
static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor(101))) static void watch_fork(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}

void note(const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof text - 1)
        length = sizeof text - 1;
    request(NOTE, text, (size_t)length, NULL, 0, NULL, NULL);
}

/* For Python that runs in the program: a compiler keeps its PTX in this folder. */
API void ptxgen_ptx_folder(const char *path) {
    note("ptx-folder %s", path);
}

/* The same: a sentence for the user. */
API void ptxgen_say(const char *text) {
    note("%s", text);
}

Result unsupported(const char *name) {
    note("unsupported %s", name);
    return NOT_SUPPORTED;
}

/* What kernels print appears with the next synchronization, as from a GPU. */
static char *pending;
static size_t pending_bytes;
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;

void print_later(const char *text, size_t bytes) {
    if (!bytes)
        return;
    pthread_mutex_lock(&pending_lock);
    char *grown = realloc(pending, pending_bytes + bytes);
    if (grown) {
        memcpy(grown + pending_bytes, text, bytes);
        pending = grown;
        pending_bytes += bytes;
    }
    pthread_mutex_unlock(&pending_lock);
}

void print_pending(void) {
    if (!pending_bytes)
        return;
    pthread_mutex_lock(&pending_lock);
    if (pending_bytes) {
        fwrite(pending, 1, pending_bytes, stdout);
        fflush(stdout);
        pending_bytes = 0;
    }
    pthread_mutex_unlock(&pending_lock);
}

__attribute__((destructor)) static void print_at_exit(void) {
    print_pending();
}
