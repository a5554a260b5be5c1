// Allocations of the standard library with known sizes; each is logged as it is made. The allocator is chosen
// with --cfg: none for the system's, `jemalloc` for mallocx and its like, `counting` for one that counts and
// hands on, `limited` for one that has a limit and keeps the size in front of each block, `arena` for one that
// has nothing to do with malloc.
use std::alloc::Layout;
use std::io::{Read, Write};

#[cfg(jemalloc)]
mod own {
    use std::alloc::{GlobalAlloc, Layout};
    extern "C" {
        #[cfg_attr(prefixed, link_name = "_rjem_mallocx")]
        fn mallocx(size: usize, flags: i32) -> *mut u8;
        #[cfg_attr(prefixed, link_name = "_rjem_rallocx")]
        fn rallocx(block: *mut u8, size: usize, flags: i32) -> *mut u8;
        #[cfg_attr(prefixed, link_name = "_rjem_sdallocx")]
        fn sdallocx(block: *mut u8, size: usize, flags: i32);
    }
    fn alignment(layout: &Layout) -> i32 {
        layout.align().trailing_zeros() as i32
    }
    pub struct Own;
    unsafe impl GlobalAlloc for Own {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            mallocx(layout.size(), alignment(&layout))
        }
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            mallocx(layout.size(), alignment(&layout) | 0x40)
        }
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            sdallocx(block, layout.size(), alignment(&layout))
        }
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            rallocx(block, size, alignment(&layout))
        }
    }
    #[global_allocator]
    static OWN: Own = Own;
}

#[cfg(counting)]
mod own {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    pub struct Own;
    unsafe impl GlobalAlloc for Own {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            COUNT.fetch_add(1, Ordering::Relaxed);
            System.alloc(layout)
        }
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            COUNT.fetch_add(1, Ordering::Relaxed);
            System.alloc_zeroed(layout)
        }
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            System.dealloc(block, layout)
        }
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            System.realloc(block, layout, size)
        }
    }
    #[global_allocator]
    static OWN: Own = Own;
}

#[cfg(limited)]
mod own {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering};
    static USED: AtomicUsize = AtomicUsize::new(0);
    const LIMIT: usize = 1 << 30;
    pub struct Own;
    fn with_front(layout: Layout) -> (Layout, usize) {
        let front = layout.align().max(16);
        (unsafe { Layout::from_size_align_unchecked(layout.size() + front, layout.align()) }, front)
    }
    unsafe impl GlobalAlloc for Own {
        #[inline(never)]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let (whole, front) = with_front(layout);
            if USED.fetch_add(layout.size(), Ordering::Relaxed) > LIMIT {
                return std::ptr::null_mut();
            }
            let block = System.alloc(whole);
            *(block as *mut usize) = layout.size();
            block.add(front)
        }
        #[inline(never)]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            let (whole, front) = with_front(layout);
            let block = block.sub(front);
            USED.fetch_sub(*(block as *mut usize), Ordering::Relaxed);
            System.dealloc(block, whole)
        }
    }
    #[global_allocator]
    static OWN: Own = Own;
}

#[cfg(arena)]
mod own {
    use std::alloc::{GlobalAlloc, Layout};
    use std::sync::atomic::{AtomicUsize, Ordering};
    const SIZE: usize = 16 << 20;
    #[repr(align(4096))]
    struct Arena(std::cell::UnsafeCell<[u8; SIZE]>);
    unsafe impl Sync for Arena {}
    static ARENA: Arena = Arena(std::cell::UnsafeCell::new([0; SIZE]));
    static USED: AtomicUsize = AtomicUsize::new(0);
    pub struct Own;
    unsafe impl GlobalAlloc for Own {
        #[inline(never)]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let room = layout.size() + layout.align();
            let start = USED.fetch_add(room, Ordering::Relaxed);
            if start + room > SIZE {
                return std::ptr::null_mut();
            }
            let address = (ARENA.0.get() as usize + start + layout.align() - 1) & !(layout.align() - 1);
            address as *mut u8
        }
        #[inline(never)]
        unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}
    }
    #[global_allocator]
    static OWN: Own = Own;
}

#[derive(Clone, Copy)]
struct Entry(char, usize, usize, usize);

/// Does not allocate while it is filled.
struct Log {
    entries: [Entry; 256],
    count: usize,
}

impl Log {
    fn note(&mut self, what: char, old: usize, address: usize, size: usize) {
        self.entries[self.count] = Entry(what, old, address, size);
        self.count += 1;
    }
    fn made<T>(&mut self, block: *const T, size: usize) {
        self.note('a', 0, block as *const u8 as usize, size)
    }
    fn freed<T>(&mut self, block: *const T) {
        self.note('f', 0, block as *const u8 as usize, 0)
    }
}

fn say(text: &[u8]) {
    // Standard output has a buffer on the heap; a file does not.
    use std::os::fd::FromRawFd;
    let mut out = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(1) });
    out.write_all(text).unwrap();
}

fn wait() -> bool {
    use std::os::fd::FromRawFd;
    let mut input = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(0) });
    let mut line = [0u8; 16];
    input.read(&mut line).unwrap() > 0
}

#[allow(dead_code)]
#[repr(align(4096))]
struct Page([u8; 8192]);

#[inline(never)]
fn grow(vector: &mut Vec<u64>) {
    vector.reserve_exact(5000);
}

fn work(log: &mut Log) {
    let bytes = Vec::<u8>::with_capacity(10_007);
    log.made(bytes.as_ptr(), 10_007);
    let zeroed = vec![0u32; 3_001];
    log.made(zeroed.as_ptr(), 4 * 3_001);
    let boxed = Box::new([7u8; 323]);
    log.made(&*boxed, 323);
    let text = String::from("a text of forty-two letters, spaces included");
    log.made(text.as_ptr(), text.len());
    let page = unsafe { std::alloc::alloc(Layout::new::<Page>()) };
    log.made(page, 8192);
    let zero_page = unsafe { std::alloc::alloc_zeroed(Layout::new::<Page>()) };
    log.made(zero_page, 8192);

    let mut numbers = Vec::<u64>::with_capacity(10);
    log.made(numbers.as_ptr(), 80);
    numbers.extend(0..10);
    let before = numbers.as_ptr() as usize;
    grow(&mut numbers);
    log.note('r', before, numbers.as_ptr() as usize, 8 * 5010);
    let before = numbers.as_ptr() as usize;
    numbers.shrink_to_fit();
    log.note('r', before, numbers.as_ptr() as usize, 80);

    log.freed(bytes.as_ptr());
    drop(bytes);
    log.freed(zeroed.as_ptr());
    drop(zeroed);
    log.freed(text.as_ptr());
    drop(text);
    log.freed(page);
    unsafe { std::alloc::dealloc(page, Layout::new::<Page>()) };
    log.freed(zero_page);
    unsafe { std::alloc::dealloc(zero_page, Layout::new::<Page>()) };
    std::mem::forget(boxed);
    std::mem::forget(numbers);
}

fn main() {
    let mut log = Log {
        entries: [Entry(' ', 0, 0, 0); 256],
        count: 0,
    };
    say(b"ready\n");
    wait();
    work(&mut log);
    for entry in &log.entries[..log.count] {
        say(format!("{} {} {} {}\n", entry.0, entry.1, entry.2, entry.3).as_bytes());
    }
    say(b"done\n");
    while wait() {}
}
