/* wordindex: builds an index of the words in a folder's files and answers a few questions from it.
 *
 *     wordindex FOLDER [WORD...]
 *
 * A small but real program with the memory habits of larger ones: a table that doubles, lists that grow by
 * realloc, buffers that live for one file, copies that live for one word, and an index that lives to the end.
 */
#include <ctype.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    char *text;
    uint32_t *places; /* file number and line, packed */
    uint32_t count, room;
};

static struct {
    struct word *words;
    size_t count, room;
    char **files;
    size_t file_count;
} word_index;

static void *grow(void *block, size_t size) {
    void *larger = realloc(block, size);
    if (!larger) {
        perror("wordindex");
        exit(1);
    }
    return larger;
}

static size_t hash(const char *text) {
    size_t value = 14695981039346656037u;
    for (; *text; text++) value = (value ^ (unsigned char)*text) * 1099511628211u;
    return value;
}

static struct word *find_slot(struct word *words, size_t room, const char *text) {
    for (size_t at = hash(text) % room;; at = (at + 1) % room)
        if (!words[at].text || strcmp(words[at].text, text) == 0) return &words[at];
}

static void double_table(void) {
    size_t room = word_index.room ? word_index.room * 2 : 1024;
    struct word *words = calloc(room, sizeof *words);
    for (size_t i = 0; i < word_index.room; i++)
        if (word_index.words[i].text) *find_slot(words, room, word_index.words[i].text) = word_index.words[i];
    free(word_index.words);
    word_index.words = words;
    word_index.room = room;
}

static void add_place(const char *text, uint32_t place) {
    if (word_index.count * 2 >= word_index.room) double_table();
    struct word *word = find_slot(word_index.words, word_index.room, text);
    if (!word->text) {
        word->text = strdup(text);
        word_index.count++;
    }
    if (word->count == word->room) {
        word->room = word->room ? word->room * 2 : 4;
        word->places = grow(word->places, word->room * sizeof *word->places);
    }
    word->places[word->count++] = place;
}

static char *read_file(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) return NULL;
    char *text = NULL;
    size_t length = 0, room = 0;
    do {
        room += 64 << 10;
        text = grow(text, room + 1);
        length += fread(text + length, 1, room - length, file);
    } while (length == room);
    text[length] = '\0';
    fclose(file);
    return text;
}

static int add_file(const char *path, const struct stat *status, int kind) {
    (void)status;
    char *text = kind == FTW_F ? read_file(path) : NULL;
    if (!text) return 0;
    word_index.files = grow(word_index.files, (word_index.file_count + 1) * sizeof *word_index.files);
    word_index.files[word_index.file_count++] = strdup(path);
    uint32_t line = 1;
    for (char *at = text; *at;) {
        if (*at == '\n') line++;
        size_t length = 0;
        while (isalpha((unsigned char)at[length])) length++;
        if (length > 2) {
            char *word = strndup(at, length);
            for (char *letter = word; *letter; letter++) *letter = (char)tolower((unsigned char)*letter);
            add_place(word, (uint32_t)(word_index.file_count << 16) | (line & 0xffff));
            free(word);
        }
        at += length ? length : 1;
    }
    free(text);
    return 0;
}

int main(int count, char **arguments) {
    const char *folder = count > 1 ? arguments[1] : "/usr/include";
    if (ftw(folder, add_file, 32) != 0) {
        perror(folder);
        return 1;
    }
    size_t places = 0;
    for (size_t i = 0; i < word_index.room; i++) places += word_index.words[i].count;
    printf("%zu words in %zu places of %zu files\n", word_index.count, places, word_index.file_count);
    for (int i = 2; i < count; i++) {
        struct word *word = find_slot(word_index.words, word_index.room, arguments[i]);
        printf("  %s: %u\n", arguments[i], word->count);
    }
    return 0;
}
