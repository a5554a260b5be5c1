//! global_allocator: a Rust program whose allocator is its own, and tells malloscope what it hands out.
//!
//!     rustc -g -O global_allocator.rs
//!     malloscope run --exact -- ./global_allocator
//!
//! `Reported` goes around any allocator that does not take its memory from malloc: around `System` it is not needed,
//! because malloc is recorded anyway. Run without the profiler, the program works the same.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void, CString};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

// ---- malloscope's C API, where it is present ----

mod malloscope {
    use super::*;

    extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// Stable Rust has no weak symbols: a function of the API is looked for when it is first called.
    struct Function {
        name: &'static [u8],
        address: AtomicUsize,
    }

    const ABSENT: usize = 1;

    impl Function {
        const fn new(name: &'static [u8]) -> Self {
            Function { name, address: AtomicUsize::new(0) }
        }

        fn find(&self) -> Option<usize> {
            let mut address = self.address.load(Ordering::Relaxed);
            if address == 0 {
                let found = unsafe { dlsym(std::ptr::null_mut(), self.name.as_ptr().cast()) } as usize;
                address = if found == 0 { ABSENT } else { found };
                self.address.store(address, Ordering::Relaxed);
            }
            (address != ABSENT).then_some(address)
        }
    }

    static REGISTER: Function = Function::new(b"mscope_heap_register\0");
    static ALLOC: Function = Function::new(b"mscope_heap_alloc\0");
    static FREE: Function = Function::new(b"mscope_heap_free\0");
    static BEGIN: Function = Function::new(b"mscope_scope_begin\0");
    static END: Function = Function::new(b"mscope_scope_end\0");

    /// 0 if the profiler is absent, which the other functions take for "no heap".
    pub fn register(name: &'static [u8]) -> u32 {
        type Signature = unsafe extern "C" fn(*const c_char, *const c_void) -> u32;
        REGISTER.find().map_or(0, |f| unsafe {
            std::mem::transmute::<usize, Signature>(f)(name.as_ptr().cast(), std::ptr::null())
        })
    }

    #[inline(always)]
    pub fn alloc(heap: u32, block: *const u8, size: usize) {
        type Signature = unsafe extern "C" fn(u32, *const c_void, usize) -> c_int;
        if let Some(f) = ALLOC.find() {
            unsafe { std::mem::transmute::<usize, Signature>(f)(heap, block.cast(), size) };
        }
    }

    #[inline(always)]
    pub fn free(heap: u32, block: *const u8) {
        type Signature = unsafe extern "C" fn(u32, *const c_void) -> c_int;
        if let Some(f) = FREE.find() {
            unsafe { std::mem::transmute::<usize, Signature>(f)(heap, block.cast()) };
        }
    }

    /// A scope for as long as the value lives.
    pub struct Scope;

    impl Scope {
        #[inline(always)]
        pub fn enter(name: &str) -> Scope {
            type Signature = unsafe extern "C" fn(*const c_char);
            if let Some(f) = BEGIN.find() {
                let name = CString::new(name).unwrap_or_default();
                unsafe { std::mem::transmute::<usize, Signature>(f)(name.as_ptr()) };
            }
            Scope
        }
    }

    impl Drop for Scope {
        #[inline(always)]
        fn drop(&mut self) {
            type Signature = unsafe extern "C" fn();
            if let Some(f) = END.find() {
                unsafe { std::mem::transmute::<usize, Signature>(f)() };
            }
        }
    }
}

/// Tells malloscope what goes through an allocator.
struct Reported<A> {
    allocator: A,
    name: &'static [u8],
    heap: AtomicUsize,
}

const NOT_REGISTERED: usize = usize::MAX;

impl<A> Reported<A> {
    const fn new(name: &'static [u8], allocator: A) -> Self {
        Reported { allocator, name, heap: AtomicUsize::new(NOT_REGISTERED) }
    }

    /// The first allocation comes before any other thread is there.
    #[inline(always)]
    fn heap(&self) -> u32 {
        let mut heap = self.heap.load(Ordering::Relaxed);
        if heap == NOT_REGISTERED {
            heap = malloscope::register(self.name) as usize;
            self.heap.store(heap, Ordering::Relaxed);
        }
        heap as u32
    }
}

unsafe impl<A: GlobalAlloc> GlobalAlloc for Reported<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = self.allocator.alloc(layout);
        if !block.is_null() {
            malloscope::alloc(self.heap(), block, layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // First: afterwards another thread can be given the address.
        malloscope::free(self.heap(), block);
        self.allocator.dealloc(block, layout);
    }
    // realloc is made of the two above, as GlobalAlloc has it.
}

// ---- an allocator that knows nothing of malloc ----

extern "C" {
    fn mmap(at: *mut c_void, size: usize, access: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn munmap(at: *mut c_void, size: usize) -> c_int;
}

const READ_WRITE: c_int = 3;
const PRIVATE_ANONYMOUS: c_int = 0x22;
const CLASSES: usize = 12; // of 16 bytes to 32 KiB; larger ones are mapped
const CHUNK: usize = 256 << 10;

unsafe fn map(size: usize) -> *mut u8 {
    let memory = mmap(std::ptr::null_mut(), size, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
    if memory as isize == -1 { std::ptr::null_mut() } else { memory.cast() }
}

/// Lists of free blocks, by powers of two.
struct FreeLists {
    locked: AtomicBool,
    lists: UnsafeCell<[*mut u8; CLASSES]>,
}

unsafe impl Sync for FreeLists {}

impl FreeLists {
    const fn new() -> Self {
        FreeLists { locked: AtomicBool::new(false), lists: UnsafeCell::new([std::ptr::null_mut(); CLASSES]) }
    }

    fn class(layout: Layout) -> usize {
        let size = layout.size().max(layout.align()).max(16).next_power_of_two();
        size.trailing_zeros() as usize - 4
    }

    unsafe fn with_list<T>(&self, class: usize, act: impl FnOnce(&mut *mut u8) -> T) -> T {
        while self.locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let result = act(&mut (*self.lists.get())[class]);
        self.locked.store(false, Ordering::Release);
        result
    }
}

unsafe impl GlobalAlloc for FreeLists {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = Self::class(layout);
        if class >= CLASSES {
            return map(layout.size()); // pages are aligned well enough for what this program asks for
        }
        self.with_list(class, |list| {
            if list.is_null() {
                let chunk = map(CHUNK);
                for at in (0..if chunk.is_null() { 0 } else { CHUNK }).step_by(16 << class) {
                    *chunk.add(at).cast() = *list;
                    *list = chunk.add(at);
                }
            }
            let block = *list;
            if !block.is_null() {
                *list = *block.cast();
            }
            block
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let class = Self::class(layout);
        if class >= CLASSES {
            munmap(block.cast(), layout.size());
            return;
        }
        self.with_list(class, |list| {
            *block.cast() = *list;
            *list = block;
        });
    }
}

#[global_allocator]
static ALLOCATOR: Reported<FreeLists> = Reported::new(b"rust\0", FreeLists::new());

// ---- what it is used for ----

#[inline(never)]
fn read_lines(count: usize) -> Vec<String> {
    let _scope = malloscope::Scope::enter("read lines");
    let mut lines = Vec::with_capacity(count);
    for number in 0..count {
        let mut line = String::with_capacity(100);
        line.push_str("line ");
        line.push_str(if number % 2 == 0 { "even" } else { "odd" });
        lines.push(line);
    }
    lines
}

#[inline(never)]
fn keep_even(lines: Vec<String>) -> Vec<Box<str>> {
    let _scope = malloscope::Scope::enter("keep even");
    let mut kept = Vec::with_capacity(lines.len() / 2);
    for line in &lines {
        if line.ends_with("even") {
            kept.push(line.as_str().into());
        }
    }
    kept
}

fn main() {
    let kept = std::thread::spawn(|| keep_even(read_lines(1000))).join().unwrap();
    println!("{} lines kept", kept.len());
    std::mem::forget(kept); // so that the report shows them as live
}
