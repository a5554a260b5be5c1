/* Names of functions that can be read in a table. C++ and Rust spell types out: what nobody would write is
 * left out, and of what is still long the innermost types.
 *
 *     std::vector<int, std::allocator<int> >::push_back(int const&)      std::vector<int>::push_back(int
 * const&) <alloc::vec::Vec<T>>::push                                         Vec<T>::push shop::cat*
 * make<shop::cat>(int)                                    make<shop::cat>(int) store::Table<Key<...>,
 * Row<...>>::find(Key<...> const&, ...)       store::Table<…>::find(…)
 */
#ifndef MALLOSCOPE_VIEW_SHORT_NAME_H
#define MALLOSCOPE_VIEW_SHORT_NAME_H

#define SHORT_NAME_WIDTH 60 /* longer names lose arguments */

/* Shortens `name` in place; it never grows. `mark` stands for what is left out: "…" or "..". A name that is
 * not understood stays as it is. */
void short_name(char *name, const char *mark);

#endif
