// Rust allocations through the standard library. Built with `--cfg ledger` the program has a global allocator
// that counts what each site does and prints it: the truth for the same program built without.
//
// Each site is a closure on the line that carries the comment `@site NAME`.
use std::alloc::{alloc, alloc_zeroed, Layout};
use std::collections::{BTreeMap, HashMap};

#[cfg(ledger)]
mod ledger {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    #[derive(Clone, Copy)]
    pub struct Site {
        name: &'static str,
        objects: usize,
        bytes: usize,
        frees: usize,
        freed_bytes: usize,
        peak: usize,
    }

    const NOWHERE: Site = Site { name: "", objects: 0, bytes: 0, frees: 0, freed_bytes: 0, peak: 0 };

    struct Counting;

    // The program has one thread.
    struct Book(Cell<[Site; 32]>, Cell<usize>);
    unsafe impl Sync for Book {}
    static BOOK: Book = Book(Cell::new([NOWHERE; 32]), Cell::new(0));

    fn update(change: impl Fn(&mut Site)) {
        let mut sites = BOOK.0.get();
        let site = &mut sites[BOOK.1.get()];
        change(site);
        site.peak = site.peak.max(site.bytes.wrapping_sub(site.freed_bytes));
        BOOK.0.set(sites);
    }

    fn add(size: usize) {
        update(|site| {
            site.objects += 1;
            site.bytes += size;
        })
    }

    fn remove(size: usize) {
        update(|site| {
            site.frees += 1;
            site.freed_bytes += size;
        })
    }

    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let pointer = System.alloc(layout);
            if !pointer.is_null() {
                add(layout.size());
            }
            pointer
        }
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            let pointer = System.alloc_zeroed(layout);
            if !pointer.is_null() {
                add(layout.size());
            }
            pointer
        }
        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            remove(layout.size());
            System.dealloc(pointer, layout)
        }
        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            let new = System.realloc(pointer, layout, size);
            if !new.is_null() {
                remove(layout.size());
                add(size);
            }
            new
        }
    }

    #[global_allocator]
    static COUNTING: Counting = Counting;

    pub fn enter(name: &'static str) {
        let mut sites = BOOK.0.get();
        let index = (1..sites.len()).find(|&i| sites[i].name == name || sites[i].name.is_empty()).unwrap();
        sites[index].name = name;
        BOOK.0.set(sites);
        BOOK.1.set(index);
    }

    pub fn leave() {
        BOOK.1.set(0);
    }

    pub fn print() {
        let sites = BOOK.0.get();
        let lines: Vec<String> = sites[1..]
            .iter()
            .filter(|site| !site.name.is_empty())
            .map(|site| {
                format!(
                    "\"{}\": {{\"total_objects\": {}, \"total_bytes\": {}, \"frees\": {}, \"live_objects\": {}, \
                     \"live_bytes\": {}, \"own_peak_at_most\": {}}}",
                    site.name,
                    site.objects,
                    site.bytes,
                    site.frees,
                    site.objects - site.frees,
                    site.bytes - site.freed_bytes,
                    site.peak
                )
            })
            .collect();
        println!("{{\"sites\": {{{}}}}}", lines.join(", "));
    }
}

#[cfg(not(ledger))]
mod ledger {
    pub fn enter(_: &'static str) {}
    pub fn leave() {}
    pub fn print() {}
}

/// Keeps the compiler from seeing what becomes of a value, and from leaving out its allocation.
/// (Debian's rustc does not have std::hint::black_box yet.)
fn black_box<T>(value: T) -> T {
    unsafe { std::arch::asm!("/* {0} */", in(reg) &value as *const T) };
    value
}

/// Counts what `work` does under `name`.
#[inline(never)]
fn at<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    ledger::enter(name);
    let result = black_box(work());
    ledger::leave();
    result
}

#[repr(align(4096))]
struct Page([u8; 4096]);

fn main() {
    let vector = at("vec_capacity", || Vec::<u64>::with_capacity(1000)); // @site vec_capacity
    let zeroed = at("vec_zeroed", || vec![0u8; 123_456]); // @site vec_zeroed
    let text = at("string", || String::from("forty characters, give or take a couple")); // @site string
    let boxed = at("boxed", || Box::new([7u8; 320])); // @site boxed
    let page = at("aligned", || unsafe { Box::from_raw(alloc(Layout::new::<Page>()) as *mut Page) }); // @site aligned
    assert_eq!(&*page as *const Page as usize % 4096, 0);
    let page = black_box(page);

    let mut growing: Vec<u32> = Vec::new();
    for i in 0..5000 {
        at("vec_growth", || growing.push(i)); // @site vec_growth
    }
    at("vec_growth", || growing.shrink_to_fit()); // @site vec_growth

    let map = at("hash_map", || (0..500u64).map(|i| (i, i * i)).collect::<HashMap<u64, u64>>()); // @site hash_map
    let tree = at("tree_map", || (0..500u64).map(|i| (i, i)).collect::<BTreeMap<u64, u64>>()); // @site tree_map

    for i in 0..100usize {
        at("temporary", || drop(black_box(vec![1u8; 10 + i]))); // @site temporary
    }
    at("unit_box", || drop(black_box(Box::new(())))); // @site unit_box

    let layout = Layout::from_size_align(999, 8).unwrap();
    let raw = at("alloc_zeroed", || unsafe { alloc_zeroed(layout) }); // @site alloc_zeroed
    assert!(!raw.is_null());
    let mut failed: Vec<u8> = Vec::new();
    assert!(at("failing", || failed.try_reserve(isize::MAX as usize)).is_err()); // @site failing

    ledger::print();
    assert_eq!(map[&20] + tree[&20], 420);
    black_box((&vector, &zeroed, &text, &boxed, &page, &growing, &page.0));
    std::process::exit(0) // everything stays live
}
