/* arena: reads arithmetic, one expression a line, and computes it. All of its memory comes from an arena.
 *
 *     echo '1 + 2 * 3' | arena
 *     malloscope run --exact -- arena < expressions
 *
 * An arena hides its memory from every malloc profiler: they see one large block. The lines marked
 * `malloscope` are all that it takes to see what is in it. Without the profiler they cost a branch each. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <malloscope.h>

/* ---- the arena ---- */

struct arena {
    char *start, *next, *end;
    mscope_heap heap; /* malloscope */
};

static struct arena arena_make(const char *name, size_t size) {
    char *block = malloc(size);
    if (!block) {
        perror(name);
        exit(1);
    }
    struct arena arena = {.start = block, .next = block, .end = block + size};
    arena.heap = mscope_heap_register(name, NULL); /* malloscope */
    mscope_heap_backing(arena.heap, block, size);  /* malloscope: count the objects, not this block */
    return arena;
}

static void *arena_alloc(struct arena *arena, size_t size, const char *type) {
    size_t room = (size + 15) & ~(size_t)15;
    if (room > (size_t)(arena->end - arena->next)) {
        fprintf(stderr, "arena: an expression is too long\n");
        exit(1);
    }
    void *object = arena->next;
    arena->next += room;
    mscope_heap_alloc(arena->heap, object, size); /* malloscope */
    mscope_heap_type(arena->heap, object, type);  /* malloscope */
    return memset(object, 0, size);
}

/* Frees everything that was allocated since arena->next was `mark`. */
static void arena_release(struct arena *arena, char *mark) {
    mscope_heap_reset_range(arena->heap, mark, arena->next); /* malloscope */
    arena->next = mark;
}

static void arena_free(struct arena *arena) {
    mscope_heap_reset(arena->heap); /* malloscope */
    free(arena->start);
}

/* ---- what it is used for ---- */

struct token {
    char kind; /* the operator or parenthesis itself; '0' for a number, '\0' for the end of the line */
    double value;
    struct token *next;
};

struct node {
    char kind;
    double value;
    struct node *left, *right;
};

static struct token *read_tokens(struct arena *arena, const char *text) {
    MSCOPE_SCOPE("read tokens"); /* malloscope */
    struct token first = {.next = NULL}, *last = &first;
    for (;;) {
        while (isspace((unsigned char)*text)) text++;
        last = last->next = arena_alloc(arena, sizeof *last, "struct token");
        last->kind = *text;
        if (*text == '\0') return first.next;
        if (isdigit((unsigned char)*text)) {
            char *end;
            last->kind = '0';
            last->value = strtod(text, &end);
            text = end;
        } else {
            text++;
        }
    }
}

static struct node *parse(struct arena *arena, struct token **token, int binds);

static struct node *parse_operand(struct arena *arena, struct token **token) {
    if ((*token)->kind == '(') {
        *token = (*token)->next;
        struct node *inner = parse(arena, token, 0);
        if ((*token)->kind == ')') *token = (*token)->next;
        return inner;
    }
    struct node *node = arena_alloc(arena, sizeof *node, "struct node");
    node->kind = '0';
    node->value = (*token)->value;
    if ((*token)->kind == '0') *token = (*token)->next;
    return node;
}

static int strength(char sign) {
    return sign == '+' || sign == '-' ? 1 : sign == '*' || sign == '/' ? 2 : 0;
}

static struct node *parse(struct arena *arena, struct token **token, int binds) {
    struct node *left = parse_operand(arena, token);
    while (strength((*token)->kind) > binds) {
        struct node *node = arena_alloc(arena, sizeof *node, "struct node");
        node->kind = (*token)->kind;
        *token = (*token)->next;
        node->left = left;
        node->right = parse(arena, token, strength(node->kind));
        left = node;
    }
    return left;
}

static double compute(const struct node *node) {
    switch (node->kind) {
    case '+':
        return compute(node->left) + compute(node->right);
    case '-':
        return compute(node->left) - compute(node->right);
    case '*':
        return compute(node->left) * compute(node->right);
    case '/':
        return compute(node->left) / compute(node->right);
    default:
        return node->value;
    }
}

int main(void) {
    struct arena trees = arena_make("trees", 1 << 20), scratch = arena_make("scratch", 1 << 16);
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        MSCOPE_SCOPE("line"); /* malloscope */
        char *mark = scratch.next;
        struct token *tokens = read_tokens(&scratch, line);
        printf("%g\n", compute(parse(&trees, &tokens, 0)));
        arena_release(&scratch, mark); /* the tokens of the line; its tree is kept */
    }
    arena_free(&scratch);
    (void)trees; /* not freed: a real program would use the trees until its end */
    return 0;
}
