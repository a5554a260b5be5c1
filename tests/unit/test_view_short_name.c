/* Names of functions as tables show them. */
#include "check.h"
#include "view/name_scan.h"
#include "view/short_name.h"

#include <stdlib.h>

static const char *shortened(const char *name) {
    static char text[4096];
    snprintf(text, sizeof text, "%s", name);
    short_name(text, "…");
    return text;
}

static void short_names_stay_as_they_are(void) {
    static const char *const names[] = {"main", "parse(char const*)", "zoo::cat::feed(long)",
        "[libx.so+0x12]", "operator new(unsigned long)",
        "operator new[](unsigned long, std::nothrow_t const&)", "(anonymous namespace)::work(int) const",
        "Big::operator<<(int)", "Big::operator->() const", "Big::operator unsigned long() const",
        "main::{lambda(int)#1}::operator()(int) const", "core::fmt::write", "<&T as core::fmt::Debug>::fmt",
        "<[T]>::sort", "std::rt::lang_start::{closure#0}", "my::Map<Key, std::less<Key>>::find(Key)",
        "LazyCompile:*parse /app/main.js:12:3", "Function: send (net.js:1)", "int (*choose<int>(int))(char)",
        "<module>", "malloc@plt", "a<b", "x->y", "f(int)", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) CHECK_TEXT(shortened(names[i]), names[i]);
}

static void what_nobody_would_write_is_left_out(void) {
    CHECK_TEXT(shortened("std::vector<int, std::allocator<int> >::push_back(int const&)"),
        "std::vector<int>::push_back(int const&)");
    CHECK_TEXT(shortened("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
                         "::_M_create(unsigned long&, unsigned long)"),
        "std::string::_M_create(unsigned long&, unsigned long)");
    CHECK_TEXT(shortened("std::__1::basic_ostream<wchar_t, std::__1::char_traits<wchar_t> >::flush()"),
        "std::wostream::flush()");
    CHECK_TEXT(shortened("zoo::cat* make<zoo::cat>(int)"), "make<zoo::cat>(int)");
    CHECK_TEXT(shortened("std::vector<int, std::allocator<int> > make<int>(int)"), "make<int>(int)");
    CHECK_TEXT(shortened("decltype (f({parm#1})) call<int>(int)"), "call<int>(int)");
    CHECK_TEXT(shortened("std::ostream& operator<< <char>(std::ostream&, char)"),
        "operator<< <char>(std::ostream&, char)");
    CHECK_TEXT(shortened("bool ns::operator==<int>(A<int> const&, A<int> const&)"),
        "ns::operator==<int>(A<int> const&, A<int> const&)");
    CHECK_TEXT(shortened("auto run<int>(int)::{lambda(auto:1)#1}::operator()<int>(int) const"),
        "run<int>(int)::{lambda(auto:1)#1}::operator()<int>(int) const");
    CHECK_TEXT(shortened("std::filesystem::path::string[abi:cxx11]() const"),
        "std::filesystem::path::string() const");
    CHECK_TEXT(shortened("<alloc::vec::Vec<T>>::push"), "Vec<T>::push");
    CHECK_TEXT(shortened("alloc::vec::Vec<T,A>::push"), "Vec<T,A>::push");
    CHECK_TEXT(shortened("<str>::repeat"), "str::repeat");
    CHECK_TEXT(shortened("my_alloc::vec::Vec<T>::push"), "my_alloc::vec::Vec<T>::push");
    CHECK_TEXT(shortened("<alloc::string::String as core::clone::Clone>::clone"),
        "<String as core::clone::Clone>::clone");
}

static void long_names_lose_what_lies_deepest(void) {
    CHECK_TEXT(shortened("store::Index::find(std::vector<store::Key, std::allocator<store::Key> > const&, "
                         "store::Options const&, unsigned long)"),
        "store::Index::find(…)");
    CHECK_TEXT(
        shortened("std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> "
                  ">, std::vector<int, std::allocator<int> >, std::less<std::__cxx11::basic_string<char, "
                  "std::char_traits<char>, std::allocator<char> > >, std::allocator<std::pair<"
                  "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const, "
                  "std::vector<int, std::allocator<int> > > > >::operator[](std::__cxx11::basic_string<"
                  "char, std::char_traits<char>, std::allocator<char> > const&)"),
        "std::map<std::string, std::vector<int>>::operator[](…)");
    CHECK_TEXT(shortened("store::Table<store::Key<store::Number<unsigned long>>, store::Row>::insert<int>()"),
        "store::Table<store::Key<…>, store::Row>::insert<int>()");
    CHECK_TEXT(
        shortened("a_rather_long_namespace::Outer<int>::inner<another_namespace::Type, third::Type>()"),
        "a_rather_long_namespace::Outer<int>::inner<…>()");
    CHECK_TEXT(shortened("core::ptr::drop_in_place<alloc::vec::Vec<alloc::boxed::Box<dyn "
                         "core::ops::function::Fn<(u32,)>+Output = u32>>>"),
        "core::ptr::drop_in_place<Vec<Box<…>>>");
    CHECK_TEXT(shortened("<alloc::collections::btree::map::BTreeMap<alloc::string::String, "
                         "std::collections::hash::map::HashMap<u64, u64>> as core::ops::drop::Drop>::drop"),
        "<alloc::collections::btree::map::BTreeMap<…> as Drop>::drop");
    CHECK_TEXT(shortened("<hashbrown::map::Iter<K,V> as core::iter::traits::iterator::Iterator>::next"),
        "<hashbrown::map::Iter<K,V> as Iterator>::next");
    CHECK_TEXT(shortened("<<alloc::boxed::Box<dyn core::error::Error> as core::convert::From<&str>>::from::"
                         "StringError as core::fmt::Display>::fmt"),
        "<<Box<…> as From<&str>>::from::StringError as Display>::fmt");
    CHECK_TEXT(
        shortened("main::{lambda(std::vector<std::pair<long, long>, std::allocator<std::pair<long, long> > "
                  "> const&)#1}::operator()(std::vector<std::pair<long, long>, "
                  "std::allocator<std::pair<long, long> > > const&) const"),
        "main::{lambda(…)#1}::operator()(…) const");
    CHECK_TEXT(shortened("(anonymous namespace)::visit((anonymous namespace)::Tree const&, (anonymous "
                         "namespace)::Tree const&)"),
        "(anonymous namespace)::visit(…)");
    char ascii[] = "store::Index::find(std::vector<store::Key> const&, store::Options const&, unsigned long)";
    short_name(ascii, "...");
    CHECK_TEXT(ascii, "store::Index::find(...)");
}

static void comparisons_and_arrows_are_no_brackets(void) {
    CHECK(name_scan_is_sound("f<(((3)>(2)))>()"));
    CHECK(name_scan_is_sound("f<((3)<(2))>()"));
    CHECK(name_scan_is_sound("bool operator< <int>(A<int>, A<int>)"));
    CHECK(name_scan_is_sound("A::operator->*<int>(int A::*)"));
    CHECK(name_scan_is_sound("run::<fn(u32) -> u32>"));
    CHECK(name_scan_is_sound("A::operator<=><int>(int)"));
    CHECK(!name_scan_is_sound("f<int"));
    CHECK(!name_scan_is_sound("f(int]"));
}

/* Any text may come as a name: the result is one that is not longer, and the same where brackets do not
 * match.
 */
static void any_text_is_a_name(void) {
    static const char *const parts[] = {"<", ">", "(", ")", "[", "]", "{", "}", " ", ", ",
        "::", "std::", "std::allocator<", "std::basic_string<char>", "operator", "operator<<", "->", "> >",
        "a", "longer_name", "(anonymous namespace)", "[abi:", "alloc::vec::Vec", " as ", "const", "é", "\xff",
        "decltype (", "*", ":"};
    srand(7);
    for (int round = 0; round < 200000; round++) {
        char text[1024] = "", once[1024];
        for (int i = rand() % 30; i > 0; i--)
            strcat(text, parts[(size_t)rand() % (sizeof parts / sizeof *parts)]);
        size_t length = strlen(text);
        strcpy(once, text);
        short_name(once, "…");
        CHECK(strlen(once) <= length);
        if (!name_scan_is_sound(text)) CHECK_TEXT(once, text);
    }
}

static void deep_nesting_is_left_alone(void) {
    char text[3000] = "";
    for (int i = 0; i < 1000; i++) strcat(text, "a<");
    CHECK_TEXT(shortened(text), text);
    for (int i = 0; i < 900; i++) strcat(text, ">");
    CHECK_TEXT(shortened(text), text);
}

static void very_long_names_are_cut(void) {
    static char text[1 << 20];
    for (size_t i = 0; i + 12 < sizeof text; i += 10) memcpy(text + i, "f<aaaaaaa>", 10);
    short_name(text, "…");
    CHECK_TEXT(text, "f<aaaaaaa>f<aaaaaaa>f<aaaaaaa>f<aaaaaaa>f<aaaaaaa>f<aaaaaaa>…");
}

int main(void) {
    short_names_stay_as_they_are();
    what_nobody_would_write_is_left_out();
    long_names_lose_what_lies_deepest();
    comparisons_and_arrows_are_no_brackets();
    any_text_is_a_name();
    deep_nesting_is_left_alone();
    very_long_names_are_cut();
    return check_result();
}
