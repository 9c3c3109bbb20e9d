//! An allocator that counts: the allocator of the system with a counter for the process and one for each thread.
//!
//! This is the only file of the package with `unsafe`: `GlobalAlloc` is an unsafe trait, and a program can count its
//! own allocations in no other way.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, counting `alloc`, `alloc_zeroed` and `realloc`. Freeing is not counted.
#[derive(Debug)]
pub struct Counting;

/// The number of allocations of all threads since the start of the program.
#[must_use]
pub fn in_process() -> u64 {
    PROCESS.load(Ordering::Relaxed)
}

/// The number of allocations of this thread since its start. Other threads do not change it.
#[must_use]
pub fn on_this_thread() -> u64 {
    THREAD.get()
}

/// The bytes that this thread has allocated, minus the bytes that it has freed; a reallocation counts by its
/// difference. Negative if the thread has freed more, for example memory of other threads.
#[must_use]
pub fn held_by_this_thread() -> i64 {
    HELD.get()
}

static PROCESS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    // Const and without a destructor: an access never allocates and never fails, also while the thread starts or ends.
    static THREAD: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    PROCESS.fetch_add(1, Ordering::Relaxed);
    THREAD.set(THREAD.get() + 1);
    hold(bytes);
}

fn hold(bytes: i64) {
    HELD.set(HELD.get().wrapping_add(bytes));
}

// SAFETY: every method passes its arguments unchanged to `System`, which upholds the contract; `count` touches
// three integers, allocates nothing and cannot unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`, which is the same for `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: as above, and `ptr` came from `System`, like all memory of this allocator.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::{held_by_this_thread, in_process, on_this_thread};

    #[test]
    fn counts_each_way_to_allocate() {
        let before = on_this_thread();
        let mut vec: Vec<u8> = Vec::with_capacity(1);
        assert_eq!(on_this_thread() - before, 1);
        vec.reserve_exact(4096);
        assert_eq!(on_this_thread() - before, 2);
        let zeroed = vec![0_u8; 4096];
        assert_eq!(on_this_thread() - before, 3);
        let held = held_by_this_thread();
        drop((vec, zeroed));
        assert_eq!(held - held_by_this_thread(), 2 * 4096);
        assert_eq!(on_this_thread() - before, 3);
        assert!(in_process() >= on_this_thread());
    }
}
