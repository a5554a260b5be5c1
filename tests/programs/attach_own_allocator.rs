// A global allocator of its own: blocks are cut from one large array, and the last one can be given back. No libc
// allocator is asked for what this program's code allocates. With --cfg free the compiler decides what it puts
// inline, with --cfg always it has no choice.
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROOM: usize = 1 << 20;

struct Shelf {
    room: UnsafeCell<[u8; ROOM]>,
    used: AtomicUsize,
}
unsafe impl Sync for Shelf {}

unsafe impl GlobalAlloc for Shelf {
    #[cfg_attr(always, inline(always))]
    #[cfg_attr(not(any(free, always)), inline(never))]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.room.get() as usize;
        let mut seen = self.used.load(Ordering::Relaxed);
        loop {
            let start = (base + seen + layout.align() - 1) & !(layout.align() - 1);
            let end = start - base + layout.size();
            if end > ROOM {
                return std::ptr::null_mut();
            }
            match self.used.compare_exchange(seen, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return start as *mut u8,
                Err(now) => seen = now,
            }
        }
    }
    #[cfg_attr(always, inline(always))]
    #[cfg_attr(not(any(free, always)), inline(never))]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Only the block that was cut last can be given back.
        let end = block as usize + layout.size() - self.room.get() as usize;
        let start = end - layout.size();
        let _ = self.used.compare_exchange(end, start, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[global_allocator]
static SHELF: Shelf = Shelf { room: UnsafeCell::new([0; ROOM]), used: AtomicUsize::new(0) };

#[inline(never)]
fn used<T>(value: T) -> T {
    unsafe { std::arch::asm!("/* {0} */", in(reg) &value as *const T) };
    value
}

fn main() {
    for _ in 0..100 {
        std::mem::forget(used(Box::new([1u8; 200]))); // @site kept
    }
    for _ in 0..100 {
        drop(used(Box::new([1u8; 300]))); // @site dropped
    }
    for _ in 0..10 {
        std::mem::forget(used(vec![0u8; 1000])); // @site zeroed
    }
    let mut grown = Vec::<u64>::with_capacity(10); // @site made
    for _ in 0..3 {
        grown.reserve_exact(2 * grown.capacity()); // @site grown
        unsafe { grown.set_len(grown.capacity()) };
    }
    std::mem::forget(used(grown));
    std::process::exit(0)
}
