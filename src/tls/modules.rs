//! The thread-local variables of every loaded module: where they are in a block, and their images.
//!
//! The table is made again when the set of loaded modules has changed. To see that without taking the
//! loader's lock, the words that count additions and loaded modules (dl_iterate_phdr(3) tells both) are
//! found inside the loader's own data by watching them change while a library is opened and closed;
//! where they cannot be told apart, dl_iterate_phdr is asked each time, which is slower and as right.
//!
//! Images are copied: a library may be closed while a thread that ends reads the table.

use super::glibc::{self, Glibc};
use super::hot;
use crate::lock::slow::SlowLock;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A stretch of static TLS: copy `image`, then zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Start, relative to the thread pointer.
    pub offset: isize,
    pub image: Box<[u8]>,
    pub len: usize,
}

/// A module whose variables are allocated on first use in a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dynamic {
    pub module: usize,
    /// A thread's vector of this generation or later has this module's block at its number, if any.
    pub generation: usize,
    pub image: Box<[u8]>,
    pub len: usize,
}

/// What to restore when a thread ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Modules {
    pub statics: Vec<Piece>,
    pub dynamics: Vec<Dynamic>,
    /// No library was in the middle of its dlopen.
    pub complete: bool,
    seen: Counts,
}

/// How many modules were ever added, and how many are loaded.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    adds: u64,
    loaded: u64,
}

impl Modules {
    /// Whether the set of loaded modules is still the table's.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        counts() == self.seen
    }
}

/// Fills a new block that has just been linked, if libraries were opened or closed while it was made: the
/// loader fills in a new library's variables in all blocks on its list, and this one was not there yet.
///
/// # Safety
/// `fs` is a block that nobody runs on yet; `before` is from [`counts`] before the block was allocated.
pub(crate) unsafe fn fill_new(fs: usize, before: Counts) {
    loop {
        let table = current();
        if table.complete && table.seen == before {
            return;
        }
        for p in &table.statics {
            // SAFETY: a module's stretch of the new block's static TLS.
            unsafe { restore(fs.wrapping_add_signed(p.offset) as *mut u8, &p.image, p.len) };
        }
        if table.is_current() {
            return;
        }
    }
}

/// Copies an image and zeros what follows it.
///
/// # Safety
/// `[at, at + len)` is writable and not shorter than the image.
#[inline(always)]
pub(crate) unsafe fn restore(at: *mut u8, image: &[u8], len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        core::ptr::copy_nonoverlapping(image.as_ptr(), at, image.len());
        core::ptr::write_bytes(at.add(image.len()), 0, len - image.len());
    }
}

/// The table in force. Replaced tables are leaked: a thread may be reading one (dlopen is rare).
static CURRENT: AtomicPtr<Modules> = AtomicPtr::new(core::ptr::null_mut());
/// Where the loader counts additions and loaded modules; null if that could not be found.
static ADDS: AtomicPtr<u64> = AtomicPtr::new(core::ptr::null_mut());
static LOADED: AtomicPtr<u64> = AtomicPtr::new(core::ptr::null_mut());
/// The largest number of a module that the program started with.
static AT_START: AtomicUsize = AtomicUsize::new(usize::MAX);
static REBUILD: SlowLock = SlowLock::new();

/// The table, made anew if libraries came. Call in thread context with preemption on.
#[inline]
pub(crate) fn current() -> &'static Modules {
    let table = CURRENT.load(Ordering::Acquire);
    if !table.is_null() {
        // SAFETY: tables are never freed.
        let table = unsafe { &*table };
        if table.complete && table.is_current() {
            return table;
        }
    }
    rebuild()
}

#[inline]
pub(crate) fn counts() -> Counts {
    let (adds, loaded) = (ADDS.load(Ordering::Relaxed), LOADED.load(Ordering::Relaxed));
    if adds.is_null() || loaded.is_null() {
        return asked_counts();
    }
    // SAFETY: words of the loader's data, which lives as long as the process.
    let read = |p: *mut u64| unsafe { (*p.cast::<AtomicU64>()).load(Ordering::Acquire) };
    Counts { adds: read(adds), loaded: read(loaded) }
}

fn asked_counts() -> Counts {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a live structure; `out` is the local below.
        let (info, out) = unsafe { (&*info, &mut *out.cast::<Counts>()) };
        *out = Counts { adds: info.dlpi_adds, loaded: info.dlpi_adds - info.dlpi_subs };
        1
    }
    let mut found = Counts::default();
    // SAFETY: the callback matches; it gets the address of a local.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut found).cast()) };
    found
}

#[cold]
fn rebuild() -> &'static Modules {
    let _lock = REBUILD.lock();
    let mut table = Modules { seen: asked_counts(), complete: true, ..Modules::default() };
    // SAFETY: the callback matches and gets the table.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut table).cast()) };
    // SAFETY: null or a table; tables are never freed.
    if let Some(same) = unsafe { CURRENT.load(Ordering::Acquire).as_ref() }.filter(|t| **t == table)
    {
        return same;
    }
    let table = Box::leak(Box::new(table));
    CURRENT.store(table, Ordering::Release);
    table
}

unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
    // SAFETY: the loader passes a live structure, `rebuild` the table.
    let (info, table) = unsafe { (&*info, &mut *out.cast::<Modules>()) };
    // SAFETY: the module's program headers, as the loader gives them.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
    let Some(tls) = headers.iter().find(|h| h.p_type == libc::PT_TLS) else { return 0 };
    if info.dlpi_tls_modid == 0 {
        // It stands in the list before it is given its number.
        table.complete &= tls.p_memsz == 0;
        return 0;
    }
    let image = (info.dlpi_addr as usize).wrapping_add(tls.p_vaddr as usize) as *const u8;
    let len = tls.p_memsz as usize;
    // SAFETY: the initial image of a loaded module; the loader's lock is held during the walk.
    let image = unsafe { core::slice::from_raw_parts(image, tls.p_filesz as usize) };
    match place_of(glibc::known(), info.dlpi_tls_modid) {
        Place::Unfinished => table.complete = false,
        Place::Static(offset) => {
            let libc = (offset..offset + len as isize).contains(&glibc::errno_offset());
            if !libc {
                split_around_hot_words(table, offset, image, len);
            } // else libc keeps its own: malloc's cache stays warm, the rest is reset by name
        }
        Place::Dynamic(generation) => {
            let module = info.dlpi_tls_modid;
            table.dynamics.push(Dynamic { module, generation, image: image.into(), len });
        }
    }
    0
}

/// Where a module's block is in each thread.
enum Place {
    /// So far from the thread pointer.
    Static(isize),
    /// Allocated when it is first used, in vectors of this generation or later.
    Dynamic(usize),
    /// Its dlopen(3) is under way: nobody uses its variables yet, its image is not relocated.
    Unfinished,
}

/// Reads the loader's own table. The lock that dl_iterate_phdr(3) holds round its callback is held by
/// dlclose(3) too while it takes entries away, so what is found here stays. Asking `__tls_get_addr` instead
/// would deadlock: it wants a lock that dlclose takes before the one held here; and it would force a
/// library that is just being opened to have a dynamic block.
fn place_of(g: &Glibc, module: usize) -> Place {
    let t = &g.slotinfo;
    let Some(entry) = entry_of(g, module) else { return Place::Unfinished };
    // SAFETY: a live entry; the offsets are from the loader's descriptors.
    unsafe {
        let map = *entry.add(t.map).cast::<*const u8>();
        let generation = *entry.add(t.generation).cast::<usize>();
        // A number that is given away again has its map at once, with generation 0 for the time being;
        // modules that the program started with have generation 0 for good.
        let early = generation == 0 && module > AT_START.load(Ordering::Relaxed);
        if early || map.is_null() || *map.add(t.map_modid).cast::<usize>() != module {
            return Place::Unfinished;
        }
        let below = *map.add(t.map_offset).cast::<isize>();
        if (1..=g.static_size as isize).contains(&below) {
            Place::Static(-below)
        } else {
            Place::Dynamic(generation)
        }
    }
}

/// A module's entry in the loader's table. Call it in a callback of dl_iterate_phdr(3).
fn entry_of(g: &Glibc, module: usize) -> Option<*const u8> {
    let t = &g.slotinfo;
    // SAFETY: the loader's tables, which only grow; the offsets are from its descriptors.
    unsafe {
        let (mut table, mut first) = (*t.head, 0);
        while !table.is_null() {
            let len = *table.cast::<usize>();
            if module < first + len {
                return Some(table.add(t.entries + (module - first) * t.entry_size));
            }
            first += len;
            table = *table.add(t.next).cast::<*const u8>();
        }
    }
    None
}

/// Notes which modules the program started with. Called once, at the first start of a runtime.
pub(crate) fn find_first() {
    unsafe extern "C" fn one(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a live structure; `out` is the local below.
        let (module, out) = unsafe { ((*info).dlpi_tls_modid, &mut *out.cast::<usize>()) };
        let g = glibc::known();
        if let Some(entry) = entry_of(g, module) {
            // SAFETY: a live entry.
            let generation = unsafe { *entry.add(g.slotinfo.generation).cast::<usize>() };
            *out = if generation == 0 { module.max(*out) } else { *out };
        }
        0
    }
    let mut last = 0usize;
    // SAFETY: the callback matches; it gets the address of a local.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut last).cast()) };
    AT_START.store(last, Ordering::Relaxed);
}

/// Our own hot words lie in one of the modules and must keep their values.
fn split_around_hot_words(table: &mut Modules, offset: isize, image: &[u8], len: usize) {
    let (hot, hot_len) = (hot::offset(), size_of::<hot::HotWords>() as isize);
    let end = offset + len as isize;
    let parts = if (offset..end).contains(&hot) {
        [(offset, hot), (hot + hot_len, end)]
    } else {
        [(offset, end), (end, end)]
    };
    for (from, to) in parts.into_iter().filter(|(from, to)| from < to) {
        let (skip, len) = ((from - offset) as usize, (to - from) as usize);
        let image = &image[skip.min(image.len())..];
        table.statics.push(Piece {
            offset: from,
            image: image[..image.len().min(len)].into(),
            len,
        });
    }
}

/// Looks for the loader's counters. Called once, at the first start of a runtime.
pub(crate) fn find_counters() {
    /// Stub libraries that come with glibc and that hardly anybody has loaded.
    const STUBS: [&CStr; 5] =
        [c"libutil.so.1", c"libanl.so.1", c"librt.so.1", c"libdl.so.2", c"libpthread.so.0"];
    let Some((base, words)) = loader_data() else { return };
    // SAFETY: the words are live; they are read one by one, racing with nobody that matters.
    let read = |i: usize| unsafe { core::ptr::read_volatile(base.add(i)) };
    let adds_at = |c: Counts, i: &usize| read(*i) == c.adds;
    // The number of loaded modules is 32 bits wide, with padding after it.
    let loaded_at = |c: Counts, i: &usize| read(*i) == c.loaded;
    for name in STUBS {
        let before = asked_counts();
        let mut adds: Vec<usize> = (0..words).filter(|i| adds_at(before, i)).collect();
        let mut loaded: Vec<usize> = (0..words).filter(|i| loaded_at(before, i)).collect();
        // SAFETY: a C string; the library is glibc's and has no effects.
        let lib = unsafe {
            if !libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD).is_null() {
                continue;
            }
            libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL)
        };
        if lib.is_null() {
            continue;
        }
        let during = asked_counts();
        adds.retain(|i| adds_at(during, i));
        loaded.retain(|i| loaded_at(during, i));
        // SAFETY: the handle from above.
        unsafe { libc::dlclose(lib) };
        let after = asked_counts();
        adds.retain(|i| adds_at(after, i));
        loaded.retain(|i| loaded_at(after, i));
        let moved = during.adds != before.adds && after.loaded != during.loaded;
        if let (true, [adds], [loaded]) = (moved, &adds[..], &loaded[..]) {
            ADDS.store(base.wrapping_add(*adds).cast_mut(), Ordering::Relaxed);
            LOADED.store(base.wrapping_add(*loaded).cast_mut(), Ordering::Relaxed);
            return;
        }
    }
}

/// The loader's global data, as a run of words.
fn loader_data() -> Option<(*const u64, usize)> {
    let start = glibc::symbol(c"_rtld_global").ok()?;
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let mut sym: *mut libc::Elf64_Sym = core::ptr::null_mut();
    const RTLD_DL_SYMENT: c_int = 1;
    unsafe extern "C" {
        fn dladdr1(
            addr: *const c_void,
            info: *mut libc::Dl_info,
            extra: *mut *mut libc::Elf64_Sym,
            flags: c_int,
        ) -> c_int;
    }
    // SAFETY: an address in the loader; both results are locals.
    let ok = unsafe { dladdr1(start, info.as_mut_ptr(), &mut sym, RTLD_DL_SYMENT) };
    if ok == 0 || sym.is_null() {
        return None;
    }
    // SAFETY: dladdr1 found the symbol's entry.
    let size = unsafe { (*sym).st_size } as usize;
    Some((start.cast::<u64>().cast_const(), size / 8))
}

/// Whether the counters were found (for the doctor).
pub(crate) fn counters_found() -> bool {
    !LOADED.load(Ordering::Relaxed).is_null()
}
