/* slab_server: a key-value server with a slab of its own, four threads, and lines of text over TCP:
 *
 *     set KEY VALUE     get KEY     del KEY     quit
 *
 *     slab_server        prints its port on the loopback interface, and serves until a client says `stop`
 *     malloscope run -- slab_server
 *
 * The slab has classes of 32 to 4,096 bytes; each is reported as a heap of its own, because each
 * can waste memory. Every request is a scope, so that figures can be shown by kind of request. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <malloscope.h>

#define THREADS 4

/* ---- the slab ---- */

#define CLASSES     8 /* 32, 64 … 4,096 bytes */
#define SMALLEST    32u
#define CHUNK_BYTES (64u << 10)

struct item {
    struct item *next; /* in its bucket, or in the free list of its class */
    int size_class;
    char text[]; /* KEY\0VALUE\0 */
};

static struct size_class {
    pthread_mutex_t lock;
    struct item *free;
    mscope_heap heap;
} classes[CLASSES];

static size_t class_bytes(int size_class) {
    return (size_t)SMALLEST << size_class;
}

static void slab_make(void) {
    for (int size_class = 0; size_class < CLASSES; size_class++) {
        char name[32];
        snprintf(name, sizeof name, "slab %zu", class_bytes(size_class));
        pthread_mutex_init(&classes[size_class].lock, NULL);
        classes[size_class].heap = mscope_heap_register(name, NULL); /* the name is copied */
    }
}

/* The memory comes from mmap, which is not recorded: there is nothing to mark as backing. */
static bool class_grow(int size_class) {
    char *chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED) return false;
    for (size_t at = 0; at < CHUNK_BYTES; at += class_bytes(size_class)) {
        struct item *item = (struct item *)(chunk + at);
        item->next = classes[size_class].free;
        classes[size_class].free = item;
    }
    return true;
}

static struct item *slab_alloc(size_t size) {
    int size_class = 0;
    while (size_class < CLASSES && class_bytes(size_class) < size) size_class++;
    if (size_class == CLASSES) return NULL;
    pthread_mutex_lock(&classes[size_class].lock);
    struct item *item = NULL;
    if (classes[size_class].free || class_grow(size_class)) {
        item = classes[size_class].free;
        classes[size_class].free = item->next;
        item->size_class = size_class;
    }
    pthread_mutex_unlock(&classes[size_class].lock);
    if (item) mscope_heap_alloc(classes[size_class].heap, item, size); /* the size asked for */
    return item;
}

static void slab_free(struct item *item) {
    struct size_class *size_class = &classes[item->size_class];
    mscope_heap_free(size_class->heap, item); /* before another thread can get it */
    pthread_mutex_lock(&size_class->lock);
    item->next = size_class->free;
    size_class->free = item;
    pthread_mutex_unlock(&size_class->lock);
}

/* ---- the store ---- */

#define BUCKETS 256

static struct {
    pthread_mutex_t lock;
    struct item *first;
} buckets[BUCKETS];

static unsigned bucket_of(const char *key) {
    unsigned hash = 5381;
    for (; *key; key++) hash = hash * 33 + (unsigned char)*key;
    return hash % BUCKETS;
}

static const char *format_value_of(const struct item *item) {
    return item->text + strlen(item->text) + 1;
}

/* Takes the item of that key out of its bucket; NULL if there is none. The caller holds the lock. */
static struct item *take_out(unsigned bucket, const char *key) {
    for (struct item **link = &buckets[bucket].first; *link; link = &(*link)->next)
        if (strcmp((*link)->text, key) == 0) {
            struct item *item = *link;
            *link = item->next;
            return item;
        }
    return NULL;
}

static const char *store_set(const char *key, const char *value) {
    MSCOPE_SCOPE("set");
    size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1;
    struct item *item = slab_alloc(sizeof *item + key_size + value_size);
    if (!item) return "too large";
    memcpy(item->text, key, key_size);
    memcpy(item->text + key_size, value, value_size);
    unsigned bucket = bucket_of(key);
    pthread_mutex_lock(&buckets[bucket].lock);
    struct item *former = take_out(bucket, key);
    item->next = buckets[bucket].first;
    buckets[bucket].first = item;
    pthread_mutex_unlock(&buckets[bucket].lock);
    if (former) slab_free(former);
    return "stored";
}

static const char *store_get(const char *key, FILE *answer) {
    MSCOPE_SCOPE("get");
    unsigned bucket = bucket_of(key);
    pthread_mutex_lock(&buckets[bucket].lock);
    const struct item *item = buckets[bucket].first;
    while (item && strcmp(item->text, key) != 0) item = item->next;
    char *copy = item ? strdup(format_value_of(item)) : NULL;
    pthread_mutex_unlock(&buckets[bucket].lock);
    if (!copy) return "not found";
    fprintf(answer, "value %s\n", copy);
    free(copy);
    return NULL;
}

static const char *store_delete(const char *key) {
    MSCOPE_SCOPE("del");
    unsigned bucket = bucket_of(key);
    pthread_mutex_lock(&buckets[bucket].lock);
    struct item *item = take_out(bucket, key);
    pthread_mutex_unlock(&buckets[bucket].lock);
    if (!item) return "not found";
    slab_free(item);
    return "deleted";
}

/* ---- the server ---- */

static int listener;
static _Atomic bool stopped;

/* Returns false if the client has finished. */
static bool answer_line(char *line, FILE *stream) {
    char *rest, *word = strtok_r(line, " \r\n", &rest), *key = strtok_r(NULL, " \r\n", &rest);
    char *value = strtok_r(NULL, "\r\n", &rest);
    const char *answer = "what?";
    if (word && strcmp(word, "quit") == 0) return false;
    if (word && strcmp(word, "stop") == 0) {
        stopped = true;
        shutdown(listener, SHUT_RDWR); /* wakes the threads that wait for clients */
        return false;
    }
    if (word && key && value && strcmp(word, "set") == 0)
        answer = store_set(key, value);
    else if (word && key && strcmp(word, "get") == 0)
        answer = store_get(key, stream);
    else if (word && key && strcmp(word, "del") == 0)
        answer = store_delete(key);
    if (answer) fprintf(stream, "%s\n", answer);
    fflush(stream);
    return true;
}

static void serve(int client) {
    FILE *in = fdopen(client, "r"), *out = fdopen(dup(client), "w");
    char line[8192];
    while (in && out && fgets(line, sizeof line, in) && answer_line(line, out)) {
    }
    if (in) fclose(in);
    if (out) fclose(out);
}

static void *work(void *unused) {
    (void)unused;
    int client;
    while (!stopped && (client = accept(listener, NULL, NULL)) >= 0) serve(client);
    return NULL;
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 64) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0) {
        perror("slab_server");
        return 1;
    }
    slab_make();
    for (int i = 0; i < BUCKETS; i++) pthread_mutex_init(&buckets[i].lock, NULL);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
