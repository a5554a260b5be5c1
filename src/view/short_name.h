/* Short names of functions, for tables.
 *
 * Demangled names of C++ and Rust spell out all types. What a programmer would not write is left out. From a name
 * that is still long, the innermost types are left out.
 *
 *     std::vector<int, std::allocator<int> >::push_back(int const&)     std::vector<int>::push_back(int const&)
 *     <alloc::vec::Vec<T>>::push                                        Vec<T>::push
 *     shop::cat* make<shop::cat>(int)                                   make<shop::cat>(int)
 *     store::Table<Key<...>, Row<...>>::find(Key<...> const&, ...)      store::Table<…>::find(…)
 */
#ifndef MALLOSCOPE_VIEW_SHORT_NAME_H
#define MALLOSCOPE_VIEW_SHORT_NAME_H

#define SHORT_NAME_WIDTH 60   /* a longer name loses parameters and template arguments */
#define SHORT_NAME_MOST  4096 /* bytes: of a longer name only the beginning is left */

/* Shortens `name` in place. `mark` stands for what is left out: "…" or "..". A name that is not understood stays as
 * it is. */
void short_name(char *name, const char *mark);

#endif
