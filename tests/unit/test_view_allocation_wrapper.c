/* Which functions count as allocation wrappers, and how their names are compared. */
#include "check.h"
#include "view/allocation_wrapper.h"

static const char *skeleton_of(const char *function) {
    static char skeleton[512];
    allocation_wrapper_skeleton(function, skeleton, sizeof skeleton);
    return skeleton;
}

static void names_lose_parameters_and_return_types(void) {
    CHECK_TEXT(skeleton_of("main"), "main");
    CHECK_TEXT(skeleton_of("operator new(unsigned long)"), "operator new");
    CHECK_TEXT(skeleton_of("operator new[](unsigned long, std::nothrow_t const&)"), "operator new[]");
    CHECK_TEXT(skeleton_of("parse(std::vector<int> const&)"), "parse");
    CHECK_TEXT(skeleton_of("std::vector<int, std::allocator<int> > make<int>(int)"), "make");
    CHECK_TEXT(skeleton_of("std::vector<int>::push_back(int&&)"), "std::vector::push_back");
    CHECK_TEXT(skeleton_of("(anonymous namespace)::work(int) const"), "_::work");
    CHECK_TEXT(skeleton_of("main::{lambda(int)#1}::operator()(int) const"), "main::{lambda");
    CHECK_TEXT(skeleton_of("a::b<(c)1>::d()"), "a::b::d");
    CHECK_TEXT(skeleton_of("slow_path(char const*) [clone .cold]"), "slow_path");
    CHECK_TEXT(skeleton_of("my_operator_table(int)"), "my_operator_table");
    CHECK_TEXT(skeleton_of("Big::operator<<(int)"), "Big::operator<<");
    CHECK_TEXT(
        skeleton_of(
            "void* std::__detail::_Hashtable_alloc<std::allocator<int> >::_M_allocate_node<int&>(int&)"),
        "std::__detail::_Hashtable_alloc::_M_allocate_node");
}

static void rust_names_tell_where_the_code_lives(void) {
    CHECK_TEXT(skeleton_of("alloc::raw_vec::RawVec<T,A>::reserve_for_push"),
        "alloc::raw_vec::RawVec::reserve_for_push");
    CHECK_TEXT(skeleton_of("<alloc::alloc::Global as core::alloc::Allocator>::allocate"),
        "alloc::alloc::Global::allocate");
    CHECK_TEXT(skeleton_of("<T as alloc::slice::hack::ConvertVec>::to_vec"),
        "alloc::slice::hack::ConvertVec::to_vec");
    CHECK_TEXT(skeleton_of("<my::Tree<u8> as core::clone::Clone>::clone"), "my::Tree::clone");
    CHECK_TEXT(skeleton_of("<str>::repeat"), "core::_::repeat");
    CHECK_TEXT(skeleton_of("<alloc::vec::Vec<u8>>::push"), "alloc::vec::Vec::push");
}

static void broken_names_do_no_harm(void) {
    CHECK_TEXT(skeleton_of(""), "");
    CHECK_TEXT(skeleton_of("<"), "");
    CHECK_TEXT(skeleton_of("<<<<"), "");
    CHECK_TEXT(skeleton_of("a<b"), "a");
    char small[4];
    allocation_wrapper_skeleton("abcdefgh", small, sizeof small);
    CHECK_TEXT(small, "abc");
}

static void allocation_functions_are_always_skipped(void) {
    CHECK(allocation_wrapper_of("operator new(unsigned long)", "/lib/libstdc++.so.6") == WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("operator new[](unsigned long)", NULL) == WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("std::__new_allocator<int>::allocate(unsigned long, void const*)", NULL) ==
          WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of(
              "std::allocator_traits<std::allocator<int> >::allocate(std::allocator<int>&, unsigned long)",
              NULL) == WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("__rust_alloc", NULL) == WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("calloc", "/lib64/ld-linux-x86-64.so.2") == WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("calloc", "/bin/program") == WRAPPER_NOT);
    CHECK(allocation_wrapper_of("__rustc::__rust_realloc", NULL) == WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("__rustc::__rdl_alloc", NULL) == WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("__rustc[59807616e1fa2540]::__rdl_alloc_zeroed", NULL) == WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("alloc::raw_vec::finish_grow", NULL) == WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("<my::Arena as core::alloc::global::GlobalAlloc>::realloc", NULL) ==
          WRAPPER_ALWAYS);
    CHECK(allocation_wrapper_of("<my::Arena as core::default::Default>::default", NULL) == WRAPPER_NOT);
}

static void the_standard_library_is_skipped_when_that_leads_to_a_line(void) {
    CHECK(allocation_wrapper_of("std::vector<int>::_M_default_append(unsigned long)", NULL) ==
          WRAPPER_IF_SOURCE);
    CHECK(allocation_wrapper_of("alloc::vec::Vec<T>::with_capacity", NULL) == WRAPPER_IF_SOURCE);
    CHECK(allocation_wrapper_of("__strdup", "/usr/lib/x86_64-linux-gnu/libc.so.6") == WRAPPER_IF_SOURCE);
    CHECK(allocation_wrapper_of("getline", "/usr/lib/x86_64-linux-gnu/libc.so.6") == WRAPPER_IF_SOURCE);
}

static void wrappers_of_malloc_are_skipped_when_that_leads_to_a_name(void) {
    static const char *const wrappers[] = {"xmalloc", "xnrealloc", "xstrdup", "Perl_safesysrealloc",
        "g_malloc0_n", "g_strdup_printf", "PyMem_RawMalloc", "_PyMem_RawCalloc", "PyObject_Malloc",
        "_PyObject_GC_NewVar", "CRYPTO_zalloc", "sqlite3DbMallocRawNN", "sqlite3_malloc64", "sqlite3Malloc"};
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        CHECK(allocation_wrapper_of(wrappers[i], "/bin/any") == WRAPPER_IF_NAMED);
    static const char *const others[] = {"xml_load", "xmallocator", "my_xmalloc", "g_main_loop_run",
        "PyObject_Call", "PyMem_Free", "CRYPTO_new_ex_data", "sqlite3_exec", "Perl_sv_grow"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(allocation_wrapper_of(others[i], "/bin/any") == WRAPPER_NOT);
}

static void the_programs_own_functions_are_sites(void) {
    CHECK(allocation_wrapper_of("strdup", "/home/me/program") == WRAPPER_NOT);
    CHECK(allocation_wrapper_of("getline", NULL) == WRAPPER_NOT);
    CHECK(allocation_wrapper_of("Pool::operator new(unsigned long)", NULL) == WRAPPER_NOT);
    CHECK(allocation_wrapper_of("stdlib_wrapper", NULL) == WRAPPER_NOT);
    CHECK(allocation_wrapper_of("std::vector<int> load(char const*)::inner", NULL) == WRAPPER_NOT);
    CHECK(allocation_wrapper_of("fopen", "/usr/lib/x86_64-linux-gnu/libc.so.6") == WRAPPER_NOT);
    CHECK(allocation_wrapper_of("operator news(int)", NULL) == WRAPPER_NOT);
}

int main(void) {
    names_lose_parameters_and_return_types();
    rust_names_tell_where_the_code_lives();
    broken_names_do_no_harm();
    allocation_functions_are_always_skipped();
    the_standard_library_is_skipped_when_that_leads_to_a_line();
    wrappers_of_malloc_are_skipped_when_that_leads_to_a_name();
    the_programs_own_functions_are_sites();
    return check_result();
}
